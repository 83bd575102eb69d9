/* libcurl, loaded at the first request. It loads about thirty libraries (Kerberos, LDAP, a second TLS), which
 * cost a server, which makes no requests, three megabytes and eight milliseconds. After vdi_curl_load the
 * functions are called by their own names.
 */
#ifndef VDI_CURL_LIBRARY_H
#define VDI_CURL_LIBRARY_H

#include <curl/curl.h>

#include "base.h"

#define VDI_CURL_FUNCTIONS(USE)                                                                              \
	USE(easy_cleanup)                                                                                    \
	USE(easy_getinfo)                                                                                    \
	USE(easy_init)                                                                                       \
	USE(easy_pause)                                                                                      \
	USE(easy_setopt)                                                                                     \
	USE(easy_strerror)                                                                                   \
	USE(multi_add_handle)                                                                                \
	USE(multi_cleanup)                                                                                   \
	USE(multi_info_read)                                                                                 \
	USE(multi_init)                                                                                      \
	USE(multi_perform)                                                                                   \
	USE(multi_poll)                                                                                      \
	USE(multi_remove_handle)                                                                             \
	USE(multi_setopt)                                                                                    \
	USE(multi_wakeup)                                                                                    \
	USE(slist_append)                                                                                    \
	USE(slist_free_all)

#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

#define VDI_CURL_MEMBER(name) __typeof__(&curl_##name) name;
struct vdi_curl {
	VDI_CURL_FUNCTIONS(VDI_CURL_MEMBER)
};
#undef VDI_CURL_MEMBER

/* Written by the first vdi_curl_load, then read only. */
extern struct vdi_curl vdi_curl;

/* Call before all other functions of libcurl. Any thread, any number of times; may block on the disk.
 * VD_UNAVAILABLE: what is missing. */
VDI_MUST_USE vd_status vdi_curl_load(struct vd_error *reterr);

#define curl_easy_cleanup vdi_curl.easy_cleanup
#define curl_easy_getinfo vdi_curl.easy_getinfo
#define curl_easy_init vdi_curl.easy_init
#define curl_easy_pause vdi_curl.easy_pause
#define curl_easy_setopt vdi_curl.easy_setopt
#define curl_easy_strerror vdi_curl.easy_strerror
#define curl_multi_add_handle vdi_curl.multi_add_handle
#define curl_multi_cleanup vdi_curl.multi_cleanup
#define curl_multi_info_read vdi_curl.multi_info_read
#define curl_multi_init vdi_curl.multi_init
#define curl_multi_perform vdi_curl.multi_perform
#define curl_multi_poll vdi_curl.multi_poll
#define curl_multi_remove_handle vdi_curl.multi_remove_handle
#define curl_multi_setopt vdi_curl.multi_setopt
#define curl_multi_wakeup vdi_curl.multi_wakeup
#define curl_slist_append vdi_curl.slist_append
#define curl_slist_free_all vdi_curl.slist_free_all

#endif
