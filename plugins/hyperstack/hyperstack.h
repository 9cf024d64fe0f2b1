/* hyperstack.h - the files of this plugin to each other
 *
 * An offer is a flavor of a region; a machine lives in an environment, which fixes its region and
 * its SSH keys.  A region is a scope.
 */
#ifndef GPUB_HYPERSTACK_H
#define GPUB_HYPERSTACK_H

#include <stdbool.h>

#include "core/json.h"
#include "plugins/util.h"

enum {
  USER_DATA_MAX = 65535 / 4 * 3, /* OpenStack's 64 KiB column holds it in base64 */
  FIELD_MAX = 128,
  REF_MAX = 2 * FIELD_MAX,
  PAGE_SIZE = 100,
};

struct hyperstack {
  const struct gpub_host *host;
  char *endpoint;       /* without a trailing slash */
  char *ssh_from;       /* who may reach port 22 */
  json_t *environments; /* names to rent in; empty: default-<region> */
  json_t *images;       /* preferred images, best first */
};

/* One call of the host, and where its error goes. */
struct ctx {
  const struct hyperstack *s;
  struct gpub_call *call;
  struct gpub_error *err;
};

/* api.c: what is the thing that was wanted ("list images").  *out may be NULL when the answer has
 * no use; it is a JSON object or array otherwise.  GPUB_OK only for a 2xx whose envelope says so,
 * too. */
int32_t api_get (const struct ctx *c, const char *what, const char *path, json_t **out);
int32_t api_change (const struct ctx *c, const char *what, const char *method, const char *path,
                    const json_t *body, json_t **out);
/* A read of what every account has. */
int32_t api_expect (const struct ctx *c, const char *what, const char *path, json_t **out);
/* A member that is a list. */
int32_t api_list (const struct ctx *c, const char *what, const char *path, const char *member,
                  json_t **rows);
/* Every page of one; *whole is false when rows are missing, whatever was answered. */
int32_t api_pages (const struct ctx *c, const char *what, const char *path, const char *member,
                   json_t **rows, bool *whole);

/* flavor.c: what can be rented, by name; pointers into the catalog. */
struct flavor {
  const char *region, *name, *gpu; /* gpu is "" for a machine without */
  const json_t *row;
  uint32_t gpus;
};
struct catalog {
  json_t *flavors, *prices, *stocks; /* arrays */
  int64_t now_ms;
};
bool ref_parse (const char *offer_ref, char region[static FIELD_MAX], char name[static FIELD_MAX]);
bool flavor_read (struct flavor *f, const json_t *group, const json_t *row);
bool flavor_is_spot (const struct flavor *f);
uint64_t flavor_vram_mib (const struct flavor *f); /* 0: not known */
/* Per hour; false when it is not known, which is never 0. */
bool price_of (const struct catalog *k, const char *name, double units, uint64_t *udollar);
bool flavor_price (const struct catalog *k, const struct flavor *f, uint64_t *udollar);
/* GPUB_AVAIL_*; *stock is how many could start now, -1 when that is not said. */
uint32_t flavor_stock (const struct catalog *k, const struct flavor *f, int64_t *stock);

/* catalog.c: of one region, or of all. */
int32_t catalog_read (const struct ctx *c, const char *region, struct catalog *k);
void catalog_done (struct catalog *k);
int32_t images_read (const struct ctx *c, const char *region, json_t **images);
int32_t prices_read (const struct ctx *c, json_t **prices);

/* image.c: groups is what images_read gave. */
bool image_offered (const json_t *groups, const struct flavor *f, const char *wanted);
const char *image_choose (const struct hyperstack *s, const json_t *groups, const struct flavor *f);
bool image_driver (const char *image, char driver[static 16]);

/* offers.c */
int32_t hyperstack_list_offers (void *self, struct gpub_call *, const struct gpub_offer_query *,
                                struct gpub_error *);

/* place.c: the environment of a region, and the name of this public key in it; each is added when
 * it is not there. */
int32_t environment_ensure (const struct ctx *c, const char *region, char name[static FIELD_MAX]);
int32_t key_ensure (const struct ctx *c, const char *environment, const char *public_key,
                    char name[static FIELD_MAX]);

/* create.c */
int32_t hyperstack_create (void *self, struct gpub_call *, const struct gpub_create *,
                           struct gpub_error *);

/* vm.c: a virtual machine as the SDK's machine. */
enum { ID_SIZE = 24 };
bool vm_id (const json_t *vm, char id[static ID_SIZE]);
const char *vm_region (const json_t *vm);   /* NULL when it does not say */
const json_t *vm_labels (const json_t *vm); /* for tags.h */
uint32_t vm_state (const json_t *vm);       /* GPUB_STATE_* */
const char *vm_address (const json_t *vm);  /* NULL until it is attached */
/* k may be NULL: then without prices. */
int32_t vm_emit (const struct ctx *c, const json_t *vm, const struct catalog *k);

/* machines.c */
int32_t vm_read (const struct ctx *c, const struct gpub_ref *ref, json_t **vm);
int32_t hyperstack_get (void *self, struct gpub_call *, const struct gpub_ref *,
                        struct gpub_error *);
int32_t hyperstack_find (void *self, struct gpub_call *, const struct gpub_find *,
                         struct gpub_error *);
int32_t hyperstack_list (void *self, struct gpub_call *, struct gpub_error *);

/* remove.c */
int32_t hyperstack_remove (void *self, struct gpub_call *, const struct gpub_ref *,
                           struct gpub_error *);
int32_t hyperstack_console_log (void *self, struct gpub_call *, const struct gpub_ref *, char *out,
                                uint64_t cap, uint64_t *len, struct gpub_error *);

#endif
