#include "rpc_certs.h"
#include "temp_folder.h"
#include "vdtest.h"

struct rpc_certs rpc_certs;

static bool run(const struct rpc_certs *certs, const char *arguments)
{
	char command[1024];

	snprintf(command, sizeof command,
		 "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days "
		 "30 %s >/dev/null 2>&1",
		 certs->directory, arguments);
	return system(command) == 0;
}

bool rpc_certs_make(struct rpc_certs *certs)
{
	temp_folder_make(certs->directory);
	return run(certs, "-keyout ca.key -out ca.pem -subj /CN=ca") &&
	       run(certs, "-keyout server.key -out server.pem -subj /CN=server -CA ca.pem -CAkey ca.key "
			  "-addext basicConstraints=critical,CA:FALSE "
			  "-addext subjectAltName=DNS:localhost,IP:127.0.0.1") &&
	       run(certs, "-keyout elsewhere.key -out elsewhere.pem -subj /CN=elsewhere -CA ca.pem -CAkey "
			  "ca.key -addext basicConstraints=critical,CA:FALSE "
			  "-addext subjectAltName=DNS:elsewhere.example") &&
	       run(certs, "-keyout client.key -out client.pem -subj /CN=alice -CA ca.pem -CAkey ca.key "
			  "-addext basicConstraints=critical,CA:FALSE") &&
	       run(certs, "-keyout stranger.key -out stranger.pem -subj /CN=mallory -addext "
			  "subjectAltName=DNS:localhost");
}

bool rpc_certs_revoke(const struct rpc_certs *certs, const char *certificate, const char *out)
{
	char command[1024];

	snprintf(command, sizeof command,
		 "cd %s && rm -f index && : >index && printf "
		 "'[ca]\ndefault_ca=d\n[d]\ndatabase=index\ndefault_md=sha256\ndefault_crl_days=30\n' "
		 ">ca.cnf && "
		 "{ [ -z '%s' ] || openssl ca -config ca.cnf -cert ca.pem -keyfile ca.key -revoke '%s'; } "
		 ">/dev/null 2>&1 && "
		 "openssl ca -config ca.cnf -cert ca.pem -keyfile ca.key -gencrl -out %s >/dev/null 2>&1",
		 certs->directory, certificate ? certificate : "", certificate ? certificate : "", out);
	return system(command) == 0;
}

const char *rpc_certs_path(const struct rpc_certs *certs, const char *name)
{
	static char	paths[8][128];
	static unsigned next;
	char	       *path = paths[next++ % 8];

	snprintf(path, sizeof paths[0], "%s/%s", certs->directory, name);
	return path;
}

void rpc_certs_remove(struct rpc_certs *certs)
{
	temp_folder_remove(certs->directory);
}

int rpc_certs_set_up(void **state)
{
	(void) state;
	if (!rpc_certs_make(&rpc_certs)) {
		printf("skipped: openssl cannot make certificates\n");
		rpc_certs_remove(&rpc_certs);
		exit(77);
	}
	return 0;
}

int rpc_certs_tear_down(void **state)
{
	(void) state;
	rpc_certs_remove(&rpc_certs);
	return 0;
}
