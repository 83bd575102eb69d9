/* The version of the library that is linked. */
#include <vedette/vedette.h>

const char *vd_version(void)
{
	return VD_VERSION;
}
