/* All headers that most embedders need; vedette/etcd.h and vedette/rpc_grpc.h are separate. */
#ifndef VEDETTE_H
#define VEDETTE_H

#include <vedette/bytes.h>
#include <vedette/cacher.h>
#include <vedette/codec.h>
#include <vedette/encryption.h>
#include <vedette/env.h>
#include <vedette/informer.h>
#include <vedette/poller.h>
#include <vedette/replay.h>
#include <vedette/server.h>
#include <vedette/status.h>
#include <vedette/store.h>
#include <vedette/watch.h>

#define VD_VERSION_MAJOR 0
#define VD_VERSION_MINOR 1
#define VD_VERSION_PATCH 0
#define VD_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif
/* Returns the version of the linked library as text; compare it with VD_VERSION. May be called from any
 * thread. */
VD_API const char *vd_version(void);
#ifdef __cplusplus
}
#endif
#endif
