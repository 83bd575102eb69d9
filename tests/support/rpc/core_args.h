/* For one test program each of the client and the server over gRPC C core: keeps the arguments that core is
 * created with. The program defines core's function and calls core's own one. */
#ifndef CORE_ARGS_H
#define CORE_ARGS_H

#include <dlfcn.h>
#include <grpc/grpc.h>
#include <stdio.h>
#include <string.h>

struct core_args {
	unsigned count;
	struct {
		char key[80];
		int  number;
		char text[80];
	} args[32];
};

#define CORE_ARG_ABSENT (-77)

static inline void core_args_keep(struct core_args *kept, const grpc_channel_args *args)
{
	kept->count = 0;
	for (size_t i = 0; i < args->num_args; i++) {
		const grpc_arg *arg = &args->args[i];

		if (arg->type == GRPC_ARG_POINTER)
			continue;
		(void) snprintf(kept->args[kept->count].key, 80, "%s", arg->key);
		kept->args[kept->count].number = arg->type == GRPC_ARG_INTEGER ? arg->value.integer : 0;
		(void) snprintf(kept->args[kept->count].text, 80, "%s",
				arg->type == GRPC_ARG_STRING ? arg->value.string : "");
		kept->count++;
	}
}

static inline int core_args_number(const struct core_args *kept, const char *key)
{
	for (unsigned i = 0; i < kept->count; i++)
		if (strcmp(kept->args[i].key, key) == 0)
			return kept->args[i].number;
	return CORE_ARG_ABSENT;
}

/* "": absent. */
static inline const char *core_args_text(const struct core_args *kept, const char *key)
{
	for (unsigned i = 0; i < kept->count; i++)
		if (strcmp(kept->args[i].key, key) == 0)
			return kept->args[i].text;
	return "";
}

#endif
