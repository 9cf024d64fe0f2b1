/* nebius.h - the files of this plugin to each other
 *
 * A project lives in one region and is a scope.  An offer is a preset of a platform in a project,
 * on demand or preemptible.
 */
#ifndef GPUB_NEBIUS_H
#define GPUB_NEBIUS_H

#include <pthread.h>
#include <stdbool.h>

#include "core/json.h"
#include "core/vec.h"
#include "plugins/nebius/api.pb-c.h"
#include "plugins/nebius/grpc.h"
#include "plugins/util.h"

enum {
  FIELD_MAX = 96, /* ids, regions, platforms, presets */
  REF_MAX = 4 * FIELD_MAX,
  USER_DATA_MAX = 32768, /* what the cloud takes, the part with the keys included */
  USER_DATA_ROOM = 8192, /* for that part */
  DISK_MIN_GIB = 64,     /* the images with a GPU driver need 40 */
  DISK_DEFAULT_GIB = 100,
  DISK_MAX_GIB = 8192,
  SSH_PORT = 22,
  LABELS_MAX = 64,
};

struct nebius {
  const struct gpub_host *host;
  char *endpoint, *token_url, *vm_token_url;
  char *tenant, *owner;
  bool vm_token;
  json_t *projects; /* ids; empty: every project of the tenant */
  json_t *images;   /* preferred image families, best first */
  pthread_mutex_t lock;
  struct {
    char *text;
    unsigned char of[32]; /* hash of the credentials that it was made from */
    int64_t renew_ms, until_ms;
  } token;        /* under the lock */
  json_t *prices; /* under the lock; price.c */
};

/* One call of the host, and where its error goes. */
struct ctx {
  struct nebius *s;
  struct gpub_call *call;
  struct gpub_error *err;
};

/* A string of ours or of a message, copied; false when it does not fit or is none. */
bool field_take (char *out, size_t size, const char *text);

/* ---- auth.c: *token is the caller's, to be given to token_free.  fresh: not the remembered one.
 */
int32_t token_get (const struct ctx *c, bool fresh, char **token);
void token_free (char *token);

/* ---- api.c: one unary call.  out is a pointer to a pointer to the answer's type, for AUTO_MSG. */
struct method {
  const char *service; /* of the endpoint */
  const char *path;    /* package.Service/Method */
  const char *what;    /* for people: "list instances" */
  const ProtobufCMessageDescriptor *answer;
};
void message_cleanup (void *message);
#define AUTO_MSG __attribute__ ((__cleanup__ (message_cleanup)))

int32_t api_read (const struct ctx *c, const struct method *m, const void *in, void *out);
/* key: of idempotency; the same one makes the cloud answer as it did before. */
int32_t api_change (const struct ctx *c, const struct method *m, const char *key, const void *in,
                    void *out);
/* Every page; page_token is that member of the request.  What is not GPUB_OK ends it. */
typedef int32_t (*page_fn) (void *ctx, const void *page);
int32_t api_pages (const struct ctx *c, const struct method *m, const void *in, char **page_token,
                   page_fn fn, void *ctx);

/* ---- status.c: what a refusal means, from trailers or from a finished operation */
struct refusal {
  int32_t kind; /* GPUB_E_* */
  uint32_t retry_after_ms;
  char code[64], text[160];
};
void refusal_read (struct refusal *r, int code, const char *message, const Nb__Status *details,
                   bool change);
/* The outcome of an operation: false while it runs; GPUB_OK in r->kind for a good end. */
bool operation_over (const Nb__Operation *op, struct refusal *r);

/* ---- jwt.c: the assertion of a service account; *why says what is wrong with its credentials. */
char *jwt_make (const char *credentials, size_t len, int64_t now_s, const char **why);

/* ---- projects.c */
struct project {
  char id[FIELD_MAX], region[FIELD_MAX], tenant[FIELD_MAX];
  bool active;
  int32_t kind; /* what came of it: why it cannot be read, else GPUB_OK */
  struct gpub_error err;
};
struct projects {
  struct project *at;
  size_t n, cap;
};
/* All, or one that is named.  A project that is configured and cannot be read is in it, with the
 * reason. */
int32_t projects_read (const struct ctx *c, const char *only, struct projects *ps);
/* One that works is enough; else the first one's reason. */
int32_t projects_verdict (const struct ctx *c, const struct projects *ps);
/* Its scope ends as p->kind says; what the host answers. */
int32_t project_close (const struct ctx *c, struct project *p, int32_t kind, bool some);
void projects_done (struct projects *ps);

/* ---- seat.c: what an offer_ref says, and what names say about hardware */
struct seat {
  char project[FIELD_MAX], platform[FIELD_MAX], preset[FIELD_MAX];
  bool spot;
};
bool seat_parse (const char *offer_ref, struct seat *seat);
void seat_print (const struct seat *seat, char offer_ref[static REF_MAX]);
/* "gpu-h100-sxm" to "H100 SXM"; false for a platform without GPUs. */
bool platform_gpu (const char *platform, char gpu[static FIELD_MAX]);
const char *platform_arch (const char *platform);
const char *platform_link (const char *platform);
const char *region_country (const char *region); /* NULL when it is not known */

/* ---- catalog.c: what is sold where */
struct sold {
  char region[FIELD_MAX], platform[FIELD_MAX], preset[FIELD_MAX];
  uint32_t gpus, vcpus, ram_gib, vram_gb;
  struct {
    bool sold;
    uint32_t availability; /* GPUB_AVAIL_* */
    int64_t stock;         /* -1: not said */
  } market[2];             /* GPUB_MARKET_* */
};
struct catalog {
  struct sold *at;
  size_t n, cap;
};
/* Of a tenant, from the capacity advice; of a project, from the list of platforms. */
int32_t advice_read (const struct ctx *c, const char *tenant, struct catalog *k);
int32_t platforms_read (const struct ctx *c, const struct project *p, struct catalog *k);
/* GPUB_AVAIL_*, and how many could start now, -1 when that is not said. */
uint32_t availability_of (const Nb__Availability *a, int64_t *stock);
void catalog_done (struct catalog *k);

/* ---- price.c: per hour; GPUB_E_NOT_FOUND when the calculator names none, which is never 0 */
enum price_how { PRICE_KNOWN, PRICE_RECENT, PRICE_NOW };
int32_t price_machine (const struct ctx *c, const char *region, const struct seat *seat,
                       enum price_how how, uint64_t *udollar);
int32_t price_disk_gib (const struct ctx *c, const char *region, const char *project,
                        enum price_how how, uint64_t *udollar);

/* ---- image.c */
struct images {
  json_t *rows; /* [{family, arch, driver, min_gib, recommended: [], refused: []}] */
};
int32_t images_read (const struct ctx *c, const char *region, struct images *images);
void images_done (struct images *images);
/* The family to take, NULL when none fits; wanted may be NULL. */
const json_t *image_choose (const struct nebius *s, const struct images *images,
                            const char *platform, const char *preset, const char *wanted);

/* ---- offers.c */
int32_t nebius_list_offers (void *self, struct gpub_call *, const struct gpub_offer_query *,
                            struct gpub_error *);

/* ---- userdata.c: cloud-init data that lets the keys in and carries the caller's along.  NULL with
 * *why: refused.  The caller frees. */
char *user_data_make (const struct gpub_create *a, const char **why);

/* ---- order.c */
struct order {
  struct seat seat;
  char region[FIELD_MAX], subnet[FIELD_MAX], image[FIELD_MAX], key[40];
  bool subnet_is_default;
  uint32_t disk_gib;
  uint64_t price; /* all in */
  char *user_data;
};
/* GPUB_E_NOT_FOUND: nothing has this name.  Else *there when it is this attempt's machine. */
int32_t order_look (const struct ctx *c, const struct gpub_create *a, const struct order *o,
                    bool *there);
int32_t order_send (const struct ctx *c, const struct gpub_create *a, struct order *o);

/* ---- create.c */
int32_t nebius_create (void *self, struct gpub_call *, const struct gpub_create *,
                       struct gpub_error *);

/* ---- instance.c: an instance as the SDK's machine */
const char *label_of (const Nb__Metadata *m, const char *key); /* NULL when it has none */
bool is_ours (const Nb__Metadata *m);
uint64_t labels_take (const Nb__Metadata *m, struct gpub_kv tags[static LABELS_MAX]);
enum operation { OPERATION_UNKNOWN, OPERATION_RUNS, OPERATION_DONE, OPERATION_FAILED };
/* GPUB_STATE_*; a stopped one may be yet to start, not start at all, or have run. */
uint32_t instance_state (const Nb__Instance *vm, enum operation create, int64_t now_ms);
int64_t created_ms_of (const Nb__Metadata *m); /* 0: not known */
struct found {                                 /* what is known besides the instance */
  const char *project, *region, *plugin_data;
  enum operation create;
  struct refusal why; /* of OPERATION_FAILED */
};
int32_t instance_emit (const struct ctx *c, const Nb__Instance *vm, const struct found *f);

/* ---- disks.c: boot disks that outlived their machine */
typedef int32_t (*disk_fn) (void *ctx, const Nb__Disk *disk);
int32_t disks_read (const struct ctx *c, const char *project, disk_fn fn, void *ctx);
bool disk_is_id (const char *id);
/* Ours, attached to nothing, and none of the machines in the set manages it. */
bool disk_is_stray (const Nb__Disk *disk, const json_t *machines, int64_t now_ms);
/* One that belonged to this machine, which is gone. */
bool disk_is_left_by (const Nb__Disk *disk, const struct gpub_ref *ref);
int32_t disk_emit (const struct ctx *c, const Nb__Disk *disk, const char *project,
                   const char *region);
int32_t disk_delete (const struct ctx *c, const char *id);

/* ---- machines.c */
int32_t instance_read (const struct ctx *c, const char *id, Nb__Instance **vm);
int32_t nebius_get (void *self, struct gpub_call *, const struct gpub_ref *, struct gpub_error *);
int32_t nebius_find (void *self, struct gpub_call *, const struct gpub_find *, struct gpub_error *);
int32_t nebius_list (void *self, struct gpub_call *, struct gpub_error *);

/* ---- remove.c: an operation that is accepted is enough; what is gone already is fine, too. */
int32_t delete_by_id (const struct ctx *c, const struct method *m, const char *id);
int32_t nebius_remove (void *self, struct gpub_call *, const struct gpub_ref *,
                       struct gpub_error *);

#endif
