/* The version of the linked library. */
#include <vedette/vedette.h>

const char *vd_version(void)
{
	return VD_VERSION;
}
