/* ipc.h - who owns a socket path */
#ifndef GPUB_IPC_H
#define GPUB_IPC_H

#include "core/err.h"

enum { IPC_PATH_MAX = 107 };

/* The path of an ipc:// endpoint; other transports are refused. */
const char *ipc_path (const char *endpoint, struct err *e);
/* Binds under a lock that lives as long as *lock stays open. */
int ipc_bind (void *sock, const char *endpoint, int *lock, struct err *e);

#endif
