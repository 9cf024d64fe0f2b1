/* ipc.h - who owns a socket path */
#ifndef GPUB_IPC_H
#define GPUB_IPC_H

#include "core/err.h"

enum { IPC_PATH_MAX = 107 };

/* The path of an ipc:// endpoint; other transports are refused. */
const char *ipc_path (const char *endpoint, struct err *e);
struct ipc_place {
  char path[IPC_PATH_MAX + 1];
  int lock;
};

/* Binds under a lock; the place is ours until ipc_release, which comes after the socket's end. */
int ipc_bind (void *sock, const char *endpoint, struct ipc_place *place, struct err *e);
void ipc_release (struct ipc_place *place);

#endif
