/* Which sanitizer this build uses, for gcc and clang. */
#ifndef VDI_SANITIZER_H
#define VDI_SANITIZER_H

#if defined(__has_feature)
#define VDI_HAS_FEATURE(feature) __has_feature(feature)
#else
#define VDI_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || VDI_HAS_FEATURE(address_sanitizer)
#define VDI_ADDRESS_SANITIZED 1
#else
#define VDI_ADDRESS_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__) || VDI_HAS_FEATURE(thread_sanitizer)
#define VDI_THREAD_SANITIZED 1
#else
#define VDI_THREAD_SANITIZED 0
#endif

#endif
