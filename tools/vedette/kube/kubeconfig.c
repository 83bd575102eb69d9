/* vedette kubeconfig: prints the kubeconfig of a server as YAML. Makes no requests. */
#include <stdio.h>

#include "command_line.h"
#include "kube_session.h"
#include "json_text.h"

/* Prints a line; a JSON string is a YAML string. */
static void print_line(const char *indent_and_name, const char *text)
{
	char quoted[VDI_JSON_QUOTED_MAX(4096)];

	if (text && strlen(text) <= 4096)
		printf("%s: %.*s\n", indent_and_name, (int) vdi_json_quote(vd_bytes_of(text), quoted),
		       quoted);
}

static int run(const struct vdi_command *command, int argc, char **argv)
{
	struct vdi_log_settings log = VDI_LOG_SETTINGS_INIT;
	const char	       *server = VDI_DEFAULT_SERVER, *name = "vedette", *namespace_name = "default";
	const char	       *token = NULL, *ca_file = NULL, *cert_file = NULL, *key_file = NULL;
	bool			insecure = false;
	size_t			operand_count;
	int			status;
	const struct vdi_option table[] = {
		{ 's', "server", VDI_OPTION_TEXT, "URL",
		  "address of the API server (default " VDI_DEFAULT_SERVER ")", &server },
		{ 0, "name", VDI_OPTION_TEXT, "NAME", "name of cluster, user and context (default vedette)",
		  &name },
		{ 'n', "namespace", VDI_OPTION_TEXT, "NAME", "namespace of the context (default \"default\")",
		  &namespace_name },
		{ 0, "token", VDI_OPTION_TEXT, "TOKEN", "bearer token", &token },
		{ 0, "cacert", VDI_OPTION_TEXT, "FILE", "CA bundle for verifying the server's certificate",
		  &ca_file },
		{ 0, "cert", VDI_OPTION_TEXT, "FILE", "client certificate", &cert_file },
		{ 0, "key", VDI_OPTION_TEXT, "FILE", "private key of the client certificate", &key_file },
		{ 0, "insecure", VDI_OPTION_FLAG, NULL, "do not verify the server's certificate", &insecure },
	};

	if (!vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), argc, argv, NULL, 0, &operand_count,
			       &log, &status))
		return status;
	if (strncmp(server, "http://", 7) != 0 && strncmp(server, "https://", 8) != 0)
		return vdi_command_usage_error(command, "the server must be a URL such as %s, not \"%s\"",
					       VDI_DEFAULT_SERVER, server);
	if ((cert_file == NULL) != (key_file == NULL))
		return vdi_command_usage_error(command, "--cert and --key must be given together");
	/* Without credentials for an https server, kubectl prompts for a user name. */
	if (strncmp(server, "https://", 8) == 0 && token == NULL && cert_file == NULL)
		token = "none";
	printf("apiVersion: v1\nkind: Config\nclusters:\n");
	print_line("- name", name);
	printf("  cluster:\n");
	print_line("    server", server);
	print_line("    certificate-authority", ca_file);
	if (insecure)
		printf("    insecure-skip-tls-verify: true\n");
	printf("users:\n");
	print_line("- name", name);
	printf("  user:%s\n", token || cert_file ? "" : " {}");
	print_line("    token", token);
	print_line("    client-certificate", cert_file);
	print_line("    client-key", key_file);
	printf("contexts:\n");
	print_line("- name", name);
	printf("  context:\n");
	print_line("    cluster", name);
	print_line("    user", name);
	print_line("    namespace", namespace_name);
	print_line("current-context", name);
	return VDI_EXIT_OK;
}

const struct vdi_command vdi_command_kubeconfig = {
	.name = "kubeconfig",
	.summary = "Print a kubeconfig for a running server.",
	.usage = "vedette kubeconfig [options]",
	.examples = "  vedette kubeconfig > vedette.kubeconfig\n"
		    "  kubectl --kubeconfig vedette.kubeconfig get pods -A\n",
	.run = run,
};
