/* kube_pods_int.h - one run of the network matrix, shared by its three files */
#ifndef GPUB_KUBE_PODS_INT_H
#define GPUB_KUBE_PODS_INT_H

#include "join/kube_pods.h"

enum pod_id { SERVER, PEER_SERVER, GPU, PROBE, HOST, STORAGE, PODS };

enum where { NODE, PEER };

struct kind {
  const char *name, *script;
  enum where where;
  bool host, serves;
  int rows[5]; /* what it tells about, 0-ended */
};
extern const struct kind kinds[PODS];

struct pod {
  bool started, over;
  char ip[64];
  char problem[200]; /* why it will never say anything */
};

struct run {
  struct pods *want;
  struct kube_api *api;
  const json_t *cluster;
  char ns[48], peer[254], service[64], dns_service[64], dns_pods[512];
  struct pod pods[PODS];
  struct err *e;
};

/* kube_pods_make.c: what is made in the cluster */
int pods_open (struct run *r); /* the namespace */
void pods_close (struct run *r);
int pods_start (struct run *r, enum pod_id id);
int pods_learn (struct run *r);   /* another node, and who answers DNS */
int pods_service (struct run *r); /* in front of the peer */
int pods_claim (struct run *r);

/* kube_pods_hear.c: what they say */
void pods_init_rows (struct run *r);
/* code NULL: the row's own.  The first word on a row counts. */
void pods_say (struct run *r, int number, enum pods_verdict verdict, const char *code,
               const char *text);
int pods_hear (struct run *r, enum pod_id id);
void pods_give_up (struct run *r, enum pod_id id, const char *text);
/* For what a pod could not say itself. */
void pods_conclude (struct run *r, enum pod_id id);

#endif
