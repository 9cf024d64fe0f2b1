/* shadeform.h - the files of this plugin to each other
 *
 * Shadeform is one API in front of many clouds: an offer is a (cloud, region, type, rental) seat of
 * its catalog, and the account is one scope.
 */
#ifndef GPUB_SHADEFORM_H
#define GPUB_SHADEFORM_H

#include <stdbool.h>

#include "core/json.h"
#include "plugins/util.h"

#define SCOPE "account"

enum { USER_DATA_MAX = 32 * 1024 }; /* undocumented: far below what a request may be */

struct shadeform {
  const struct gpub_host *host;
  char *endpoint; /* without a trailing slash */
  json_t *images; /* preferred images, best first */
  bool shade_cloud;
};

/* One call of the host, and where its error goes. */
struct ctx {
  const struct shadeform *s;
  struct gpub_call *call;
  struct gpub_error *err;
};

/* api.c: what is the thing that was wanted ("list instances").  *out may be NULL when the answer
 * has no use; it is a JSON object otherwise.  They return GPUB_OK only for a 2xx. */
int32_t api_get (const struct ctx *c, const char *what, const char *path, json_t **out);
int32_t api_post (const struct ctx *c, const char *what, const char *path, const json_t *body,
                  json_t **out);
/* A read whose member must be a list; *body is the whole answer. */
int32_t api_list (const struct ctx *c, const char *what, const char *path, const char *member,
                  json_t **body);

/* seat.c: availability is an element of the row's list of that name. */
enum { REF_MAX = 512, FIELD_MAX = 128 };
struct seat {
  char cloud[FIELD_MAX], region[FIELD_MAX], type[FIELD_MAX], rental[16], image[FIELD_MAX];
};
bool field_take (char *out, size_t size,
                 const char *text); /* false for what an offer_ref cannot hold */
bool seat_parse (const char *offer_ref, struct seat *seat);
bool seat_print (const struct seat *seat, char offer_ref[static REF_MAX + 1]);
bool seat_read (struct seat *seat, const json_t *row, const json_t *availability);
bool seat_same (const struct seat *a, const struct seat *b); /* image apart */
bool seat_is_spot (const struct seat *seat);
bool seat_price (const struct seat *seat, const json_t *row, const json_t *availability,
                 uint64_t *udollar);
uint32_t seat_availability (const json_t *availability); /* GPUB_AVAIL_* */
const json_t *images_of (const json_t *row);
bool image_offered (const json_t *images, const char *wanted);
const char *image_choose (const struct shadeform *s,
                          const json_t *images); /* NULL: the cloud's choice */
/* The whole catalog, or the rows of one type of one cloud. */
int32_t catalog_read (const struct ctx *c, const struct seat *only, json_t **body);
/* Reads the seat's row again: its price, and the image to take (wanted, else the seat's if still
 * offered). */
int32_t seat_quote (const struct ctx *c, struct seat *seat, const char *wanted, uint64_t *udollar);

/* offers.c */
int32_t shadeform_list_offers (void *self, struct gpub_call *, const struct gpub_offer_query *,
                               struct gpub_error *);

/* keys.c: the id of this public key in the account, added when it is not there. */
int32_t key_ensure (const struct ctx *c, const char *public_key, char id[static 64]);

/* instance.c: a Shadeform instance as the SDK's machine. */
bool id_valid (const char *id);
const json_t *instance_tags (const json_t *instance); /* for tags.h */
int32_t instance_emit (const struct ctx *c, const json_t *instance);
bool instance_deleted (const json_t *instance);

/* create.c */
json_t *auto_delete_json (int64_t not_after_ms);
int32_t shadeform_create (void *self, struct gpub_call *, const struct gpub_create *,
                          struct gpub_error *);

/* machines.c */
int32_t instances_read (const struct ctx *c, json_t **body); /* the whole account */
int32_t shadeform_get (void *self, struct gpub_call *, const struct gpub_ref *,
                       struct gpub_error *);
int32_t shadeform_find (void *self, struct gpub_call *, const struct gpub_find *,
                        struct gpub_error *);
int32_t shadeform_list (void *self, struct gpub_call *, struct gpub_error *);
int32_t shadeform_remove (void *self, struct gpub_call *, const struct gpub_ref *,
                          struct gpub_error *);
int32_t shadeform_set_not_after (void *self, struct gpub_call *, const struct gpub_ref *,
                                 int64_t ms, struct gpub_error *);

#endif
