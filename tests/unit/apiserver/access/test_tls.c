/* TLS links over a pair of sockets, with OpenSSL's own client on the other side: what a full socket does to
 * records, ends, who a certificate names. */
#include "vdtest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "security.h"
#include "tls.h"

static char folder[256];

static const char *path_of(const char *name)
{
	static char paths[8][320];
	static int  at;

	at = (at + 1) % 8;
	(void) snprintf(paths[at], sizeof paths[at], "%s/%s", folder, name);
	return paths[at];
}

static void run(const char *format, ...)
{
	char	command[2048];
	va_list arguments;

	va_start(arguments, format);
	(void) vsnprintf(command, sizeof command, format, arguments);
	va_end(arguments);
	if (system(command) != 0)
		fail_msg("%s", command);
}

static void issue(const char *name, const char *subject, const char *ca)
{
	run("cd %s && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s.key -out "
	    "%s.csr -subj '%s' 2>/dev/null && "
	    "openssl x509 -req -in %s.csr -CA %s.pem -CAkey %s.key -CAcreateserial -days 2 -out %s.pem "
	    "2>/dev/null",
	    folder, name, name, subject, name, ca, ca, name);
}

static int make_certificates(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void) snprintf(folder, sizeof folder, "%s/test_tls.XXXXXX", tmp ? tmp : "/tmp");
	if (mkdtemp(folder) == NULL)
		return -1;
	for (int i = 0; i < 2; i++)
		run("cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "
		    "%s.key -out %s.pem -subj /CN=%s -days 2 2>/dev/null",
		    folder, i ? "other" : "ca", i ? "other" : "ca", i ? "other" : "ca");
	issue("server", "/CN=server", "ca");
	issue("ann", "/O=dev/O=ops/CN=ann", "ca");
	issue("nameless", "/O=dev", "ca");
	issue("stranger", "/CN=stranger", "other");
	return 0;
}

static int remove_certificates(void **state)
{
	run("rm -rf %s", folder);
	return 0;
}

struct pair {
	struct vdi_tls	    *tls;
	struct vdi_tls_link *link;
	SSL_CTX		    *context;
	SSL		    *client;
	int		     ours, theirs;
};

/* name: the client's certificate, or NULL. */
static void pair_open(struct pair *pair, const char *name)
{
	struct vd_error error = { 0 };
	int		fds[2], bytes = 4096;

	if (vdi_tls_new(path_of("server.pem"), path_of("server.key"), path_of("ca.pem"), &pair->tls,
			&error) != VD_OK)
		fail_msg("%s", error.message);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	pair->ours = fds[0];
	pair->theirs = fds[1];
	(void) setsockopt(pair->ours, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	assert_status(vdi_tls_link_new(pair->tls, pair->ours, &pair->link), VD_OK);
	pair->context = SSL_CTX_new(TLS_client_method());
	if (name) {
		char file[64];

		(void) snprintf(file, sizeof file, "%s.pem", name);
		assert_int_equal(SSL_CTX_use_certificate_file(pair->context, path_of(file), SSL_FILETYPE_PEM),
				 1);
		(void) snprintf(file, sizeof file, "%s.key", name);
		assert_int_equal(SSL_CTX_use_PrivateKey_file(pair->context, path_of(file), SSL_FILETYPE_PEM),
				 1);
	}
	pair->client = SSL_new(pair->context);
	(void) SSL_set_fd(pair->client, pair->theirs);
	SSL_set_connect_state(pair->client);
}

static void pair_shake(struct pair *pair)
{
	vd_status status;
	bool	  wants_write;

	do {
		(void) SSL_do_handshake(pair->client);
		status = vdi_tls_link_shake(pair->link, &wants_write);
		assert_true(status == VD_OK || status == VD_AGAIN);
	} while (status != VD_OK || SSL_do_handshake(pair->client) != 1);
}

static void pair_close(struct pair *pair)
{
	(void) vdi_tls_link_free(pair->link);
	(void) vdi_tls_free(pair->tls);
	SSL_free(pair->client);
	SSL_CTX_free(pair->context);
	(void) close(pair->ours);
	(void) close(pair->theirs);
}

#define BIG 1000000

/* Every byte arrives once and in order, although the socket is full after a few of them, and records of other
 * sizes are offered each time. */
static void a_full_socket_loses_and_doubles_nothing(void **state)
{
	unsigned char *sent = malloc(BIG), *got = malloc(BIG);
	size_t	       at = 0, arrived = 0, step = 1, full = 0;
	struct pair    pair;

	for (size_t i = 0; i < BIG; i++)
		sent[i] = (unsigned char) (i * 31 + i / 251);
	pair_open(&pair, NULL);
	pair_shake(&pair);
	while (arrived < BIG) {
		size_t first = VDI_MIN(step, BIG - at), second = VDI_MIN(step * 7, BIG - at - first), taken;
		struct iovec parts[] = { { sent + at, first }, { sent, 0 }, { sent + at + first, second } };
		vd_status    status = vdi_tls_link_send(pair.link, parts, 3, &taken);
		size_t	     size;

		assert_true(status == VD_OK || status == VD_AGAIN);
		assert_true(status == VD_AGAIN || taken == first + second);
		full += status == VD_AGAIN;
		at += taken;
		step = step * 3 % 50021 + 1;
		while (SSL_read_ex(pair.client, got + arrived, VDI_MIN((size_t) 3000, BIG - arrived),
				   &size) == 1)
			arrived += size;
	}
	assert_true(full > 3);
	assert_memory_equal(sent, got, BIG);
	pair_close(&pair);
	free(sent);
	free(got);
}

static void what_is_received_is_given_out_before_waiting(void **state)
{
	struct pair pair;
	char	    buffer[8];
	size_t	    size;

	pair_open(&pair, NULL);
	pair_shake(&pair);
	assert_int_equal(SSL_write_ex(pair.client, "hello world", 11, &size), 1);
	assert_int_equal(vdi_tls_link_receive(pair.link, buffer, sizeof buffer), 8);
	assert_memory_equal(buffer, "hello wo", 8);
	assert_int_equal(vdi_tls_link_receive(pair.link, buffer, sizeof buffer), 3);
	assert_int_equal(vdi_tls_link_receive(pair.link, buffer, sizeof buffer), -1);
	assert_int_equal(errno, EAGAIN);
	(void) SSL_shutdown(pair.client);
	assert_int_equal(vdi_tls_link_receive(pair.link, buffer, sizeof buffer), 0);
	vdi_tls_link_end(pair.link);
	assert_int_equal(SSL_read_ex(pair.client, buffer, sizeof buffer, &size), 0);
	assert_int_equal(SSL_get_error(pair.client, 0), SSL_ERROR_ZERO_RETURN);
	pair_close(&pair);
}

/* Certificates are read again while connections live. */
static void a_link_outlives_its_context(void **state)
{
	struct pair  pair;
	char	     text[] = "still here", buffer[16];
	struct iovec part = { text, 10 };
	void	    *blocks[64];
	size_t	     size;

	pair_open(&pair, NULL);
	pair_shake(&pair);
	pair.tls = vdi_tls_free(pair.tls);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(blocks);
	     i++) { /* whoever looks at what was freed shall notice */
		blocks[i] = malloc(i * 16 + 8);
		memset(blocks[i], 0xa5, i * 16 + 8);
	}
	assert_status(vdi_tls_link_send(pair.link, &part, 1, &size), VD_OK);
	assert_int_equal(SSL_read_ex(pair.client, buffer, sizeof buffer, &size), 1);
	assert_int_equal(size, 10);
	assert_int_equal(SSL_write_ex(pair.client, "me too", 6, &size), 1);
	assert_int_equal(vdi_tls_link_receive(pair.link, buffer, sizeof buffer), 6);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(blocks); i++)
		free(blocks[i]);
	pair_close(&pair);
}

static void bytes_that_are_no_tls_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		vd_status   status;
	} rows[] = { { "GET / HTTP/1.1\r\nHost: a\r\n\r\n", VD_BAD_REQUEST },
		     { "\x16\x03\x01\xff\xff\xff\xff\xff\xff\xff", VD_IO },
		     { "\0\0\0\0\0\0\0\0\0\0\0\0", VD_IO } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct pair  pair;
		bool	     wants_write;
		char	     byte[] = "x";
		struct iovec part = { byte, 1 };
		size_t	     size = rows[i].text[0] ? strlen(rows[i].text) : 12;

		pair_open(&pair, NULL);
		assert_int_equal(write(pair.theirs, rows[i].text, size), (ssize_t) size);
		(void) shutdown(pair.theirs, SHUT_WR);
		assert_status(vdi_tls_link_shake(pair.link, &wants_write), rows[i].status);
		assert_status(vdi_tls_link_send(pair.link, &part, 1, &size), VD_IO);
		pair_close(&pair);
	}
}

static void a_certificate_names_user_and_groups(void **state)
{
	struct vdi_identity *identity;
	const char	    *why;
	struct pair	     pair;

	pair_open(&pair, "ann");
	pair_shake(&pair);
	assert_status(vdi_tls_link_identity(pair.link, &identity, &why), VD_OK);
	assert_null(why);
	assert_string_equal(identity->user, "ann");
	assert_int_equal(identity->group_count, 3);
	assert_string_equal(identity->groups[0], "dev");
	assert_string_equal(identity->groups[1], "ops");
	assert_string_equal(identity->groups[2], VDI_GROUP_AUTHENTICATED);
	(void) vdi_identity_unref(identity);
	(void) vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_tls_link_identity(pair.link, &identity, &why), VD_NOMEM);
	(void) vdi_alloc_fail_nth(0, 0);
	pair_close(&pair);
}

static void other_certificates_name_nobody(void **state)
{
	static const char *const rows[][2] = { { NULL, NULL },
					       { "stranger", "unable to" },
					       { "nameless", "no common name" } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_identity *identity;
		const char	    *why;
		struct pair	     pair;

		pair_open(&pair, rows[i][0]);
		pair_shake(&pair);
		assert_status(vdi_tls_link_identity(pair.link, &identity, &why), VD_OK);
		assert_null(identity);
		assert_int_equal(why != NULL, rows[i][1] != NULL);
		if (why && strstr(why, rows[i][1]) == NULL)
			fail_msg("%s", why);
		pair_close(&pair);
	}
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "we");

	assert_non_null(file);
	(void) fputs(text, file);
	(void) fclose(file);
}

static void files_that_do_not_fit_are_named(void **state)
{
	struct vdi_security *security;
	struct vd_error	     error;
	const struct {
		struct vdi_security_files files;
		const char		 *says;
	} rows[] = {
		{ { .cert = path_of("server.pem") }, "must be given together" },
		{ { .client_ca = path_of("ca.pem") }, "needs TLS" },
		{ { .policy = path_of("policy") }, "needs authenticated clients" },
		{ { .cert = path_of("absent"), .key = path_of("server.key") }, "/absent: No such file" },
		{ { .cert = path_of("server.pem"), .key = path_of("ann.key") },
		  "/ann.key: key values mismatch" },
		{ { .cert = path_of("server.pem"),
		    .key = path_of("server.key"),
		    .client_ca = path_of("server.key") },
		  "/server.key: " },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		error = (struct vd_error) { 0 };
		assert_status(vdi_security_load(&rows[i].files, &security, &error), VD_INVALID);
		if (strstr(error.message, rows[i].says) == NULL)
			fail_msg("row %zu: %s", i, error.message);
	}
	write_file("tokens", "a,ann\n");
	write_file("policy", "{\"rules\":[]}");
	assert_status(vdi_security_load(&(struct vdi_security_files) { .tokens = path_of("tokens") },
					&security, &error),
		      VD_INVALID);
	assert_non_null(strstr(error.message, "/tokens: line 1: needs"));
	write_file("tokens", "a,ann,1\n");
	assert_status(vdi_security_load(&(struct vdi_security_files) { .tokens = path_of("tokens"),
								       .policy = path_of("policy") },
					&security, &error),
		      VD_OK);
	assert_true(security->authenticates);
	assert_null(security->tls);
	assert_non_null(security->policy);
	assert_ptr_equal(vdi_security_ref(security), security);
	(void) vdi_security_unref(security);
	(void) vdi_security_unref(security);
}

/* A key that asks for a passphrase must not stop the server at a terminal. */
static void a_locked_key_is_refused(void **state)
{
	struct vdi_tls *tls;
	struct vd_error error = { 0 };

	run("cd %s && openssl ec -in server.key -aes128 -passout pass:secret -out locked.key 2>/dev/null",
	    folder);
	assert_status(vdi_tls_new(path_of("server.pem"), path_of("locked.key"), NULL, &tls, &error),
		      VD_INVALID);
	assert_non_null(strstr(error.message, "/locked.key"));
}

static void without_memory_nothing_is_lost(void **state)
{
	const struct vdi_security_files files = { .cert = path_of("server.pem"),
						  .key = path_of("server.key"),
						  .tokens = path_of("tokens"),
						  .policy = path_of("policy") };

	for (int64_t n = 1;; n++) {
		struct vdi_security *security = NULL;
		struct vdi_tls_link *link = NULL;
		vd_status	     status;

		(void) vdi_alloc_fail_nth((uint64_t) n, 1);
		status = vdi_security_load(&files, &security, NULL);
		if (status == VD_OK)
			status = vdi_tls_link_new(security->tls, 0, &link);
		(void) vdi_alloc_fail_nth(0, 0);
		(void) vdi_tls_link_free(link);
		(void) vdi_security_unref(security);
		if (status == VD_OK) {
			assert_true(n > 6);
			return;
		}
		assert_status(status, VD_NOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_socket_loses_and_doubles_nothing),
		cmocka_unit_test(what_is_received_is_given_out_before_waiting),
		cmocka_unit_test(a_link_outlives_its_context),
		cmocka_unit_test(bytes_that_are_no_tls_are_told_apart),
		cmocka_unit_test(a_certificate_names_user_and_groups),
		cmocka_unit_test(other_certificates_name_nobody),
		cmocka_unit_test(files_that_do_not_fit_are_named),
		cmocka_unit_test(a_locked_key_is_refused),
		cmocka_unit_test(without_memory_nothing_is_lost),
	};
	return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
