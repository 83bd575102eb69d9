/* VDI_SHARED: what libvedette-grpc uses of the library's inside. lib/vedette.map exports it under a version
 * of its own; it is no interface. */
#ifndef VDI_SHARED_H
#define VDI_SHARED_H

#define VDI_SHARED __attribute__((visibility("default")))

#endif
