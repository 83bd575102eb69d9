/* VDI_SHARED marks the library's internal functions that libvedette-grpc uses. lib/vedette.map exports them
 * under a version of their own; they are not part of the API. */
#ifndef VDI_SHARED_H
#define VDI_SHARED_H

#define VDI_SHARED __attribute__((visibility("default")))

#endif
