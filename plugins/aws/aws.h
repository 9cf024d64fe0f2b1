/* aws.h - the files of this plugin to each other
 *
 * An offer is a type of a region in one market; which zone it comes from is decided by create.  A
 * region is a scope.  Answers in XML are read as JSON (xml.c).
 */
#ifndef GPUB_AWS_H
#define GPUB_AWS_H

#include <pthread.h>
#include <stdbool.h>

#include "core/json.h"
#include "plugins/aws/sign.h"
#include "plugins/util.h"

enum {
  FIELD_MAX = 64,
  REF_MAX = 3 * FIELD_MAX,
  USER_DATA_RAW_MAX = 16384, /* EC2's limit, before base64 */
  USER_DATA_MAX = 12 * 1024, /* what is left of it for the caller */
  YOUNG_MS = 5 * 60 * 1000,  /* an id that is not found may be too new to be known */
  VISIBILITY_LAG_MS = 2 * 60 * 1000,
  REMOVED_MS = 2 * 3600 * 1000, /* longer than a terminated machine is shown */
  DISK_MAX_GIB = 16384,
  ACCOUNT_MAX = 32,
};

#define TAG_NOT_AFTER "gpubroker-not-after"
#define TAG_PRICE     "gpubroker-price" /* micro-dollars an hour, all in, at its launch */

struct aws {
  const struct gpub_host *host;
  char *owner;
  char *endpoint;    /* of every service; NULL: AWS's own */
  json_t *endpoints; /* by service */
  json_t *regions;   /* configured; empty: all of the account */
  json_t *types;     /* patterns of what is offered */
  char *profile, *shared_file, *config_file, *credentials_url;
  char *ami_parameter, *ami_owner, *ami_name, *ssh_user, *ssh_from, *vpc;
  uint64_t ip_udollar;
  uint32_t disk_gib;
  bool imds;

  pthread_mutex_t lock; /* guards what follows */
  json_t *cache;        /* key: {"at": ms, "value": ...}; values never change once they are in */
  struct keys keys;
  const char *source;      /* where keys came from, NULL before the first use */
  pthread_mutex_t renewal; /* one thread fetches keys at a time */
};

/* One call of the host, and where its error goes. */
struct ctx {
  struct aws *s;
  struct gpub_call *call;
  struct gpub_error *err;
  const char *region;
  uint32_t read_ms; /* the most that one read may take, so that a sick region leaves time for the
                       others; 0: what the call has left */
};

/* xml.c */
enum { XML_NAME_MAX = 64 };
json_t *xml_parse (const char *text, size_t len, char root[static XML_NAME_MAX]);

/* query.c: names are ours and need no escape. */
struct query {
  const char *action;
  char *text;
  size_t len, cap;
  int filters, values;
};
struct query query_new (const char *action);
void query_done (struct query *q);
void query_add (struct query *q, const char *name, const char *value);
void query_addf (struct query *q, const char *value, const char *name_fmt, ...) PRINTF (3, 4);
void query_int (struct query *q, const char *name, uint64_t value);
void query_filter (struct query *q, const char *name, const char *value);
void query_or (struct query *q, const char *value); /* one more value of the last filter */
#define AUTO_QUERY __attribute__ ((__cleanup__ (query_done)))

/* ini.c: one value of a file in the form of ~/.aws/credentials; false when it is not there. */
bool ini_get (const char *text, const char *section, const char *key, char *out, size_t size);

/* keys.c: the credentials of now, renewed when they end soon. */
int32_t keys_get (const struct ctx *c, struct keys *k);
/* These were refused as expired: the next keys_get fetches new ones. */
void keys_refused (const struct ctx *c, const struct keys *k);
/* The members of a credentials document of a process, a container endpoint or IMDS. */
bool keys_of_json (const json_t *doc, struct keys *k);
int64_t keys_clock (const struct ctx *c);
/* keys_http.c, keys_process.c */
int32_t keys_from_url (const struct ctx *c, struct keys *k);
int32_t keys_from_imds (const struct ctx *c, struct keys *k);
int32_t keys_from_process (const struct ctx *c, const char *command, struct keys *k);

/* refuse.c: what AWS's codes mean. */
int32_t code_kind (const char *code, int status, bool change);
/* Seconds by which this machine's clock is ahead of the server's, when the Date header says so. */
bool clock_skew (const struct gpub_http_response *r, int64_t now_ms, int64_t *seconds);

/* api.c: what is the thing that was wanted ("list instances"), for errors.  out may be NULL. */
int32_t ec2_read (const struct ctx *c, const char *what, struct query *q, json_t **out);
int32_t ec2_change (const struct ctx *c, const char *what, struct query *q, uint32_t timeout_ms,
                    json_t **out);
/* Every page; rows of the member set, which must be there. */
int32_t ec2_pages (const struct ctx *c, const char *what, const struct query *q, const char *set,
                   json_t **rows);
int32_t sts_read (const struct ctx *c, const char *what, struct query *q, json_t **out);
int32_t account_read (const struct ctx *c, char account[static ACCOUNT_MAX], char *arn,
                      size_t size);
int32_t json_read (const struct ctx *c, const char *what, const char *service, const char *target,
                   const json_t *body, json_t **out);
const char *sub_str (const json_t *j, const char *outer, const char *inner, const char *otherwise);
uint64_t num (const json_t *j, const char *key); /* XML has texts only */

/* cache.c: a reference of the caller's, or NULL when there is none of that age. */
json_t *cache_get (const struct ctx *c, const char *what, int64_t max_age_ms);
void cache_put (const struct ctx *c, const char *what, json_t *value);
void cache_drop (const struct ctx *c, const char *what);

/* regions.c */
int32_t regions_read (const struct ctx *c, json_t **names);
bool region_valid (const char *name);
const char *region_country (const char *name);

/* types.c: one instance type as it is offered; texts point into the row. */
struct type {
  const char *name, *gpu, *arch;
  uint64_t vram_mib, ram_mib;
  uint32_t gpus, denominator, vcpus;
  bool metal, on_demand, spot;
  bool usable; /* no GPU, or those of one kind that the image has a driver for */
};
bool type_read (const json_t *row, struct type *t);
const char *type_interconnect (const struct type *t);
void types_filter (const struct ctx *c, struct query *q);
int32_t types_read (const struct ctx *c, json_t **rows);          /* DescribeInstanceTypes */
int32_t zones_read (const struct ctx *c, json_t **zones_of_type); /* {type: [zone, ...]} */

/* prices.c: dollars an hour. */
struct prices {
  json_t *types; /* {type: micro-dollars} */
  uint64_t gib;  /* of a disk, micro-dollars an hour, 0: not known */
  json_t *spot;  /* {type: {zone: micro-dollars}} */
};
void prices_done (struct prices *p);
/* Spot prices of one type, or (NULL) of all that are offered. */
int32_t prices_read (const struct ctx *c, const char *type, struct prices *p);
bool price_on_demand (const struct prices *p, const char *type, uint64_t *udollar);
/* The cheapest zone, among those of the list. */
bool price_spot (const struct prices *p, const char *type, const json_t *zones, uint64_t *udollar);
/* Of a GiB an hour, if it is remembered; else 0. */
uint64_t disk_price (const struct ctx *c);
/* prices_parse.c */
bool product_price (const char *product, char type[static FIELD_MAX], uint64_t *udollar);
bool product_gib_price (const char *product, uint64_t *udollar);

/* image.c */
struct image {
  char id[FIELD_MAX], root[FIELD_MAX], name[160];
  uint32_t gib;
};
int32_t image_find (const struct ctx *c, const char *arch, struct image *out);
int32_t image_read (const struct ctx *c, const char *id, const char *arch, struct image *out);

/* network.c */
int32_t subnets_read (const struct ctx *c, json_t **subnet_of_zone, char vpc[static FIELD_MAX]);
int32_t group_ensure (const struct ctx *c, const struct gpub_create *a, const char *vpc,
                      char id[static FIELD_MAX]);

/* userdata.c: the MIME document of keys, kill switch and the caller's own; caller frees. */
int32_t user_data_build (const struct ctx *c, const struct gpub_create *a, char **out, size_t *len);

/* offers.c */
bool ref_parse (const char *ref, char region[static FIELD_MAX], char type[static FIELD_MAX],
                uint32_t *market);
/* Zones that have the type and a subnet of ours. */
json_t *zones_eligible (const json_t *zones_of_type, const json_t *subnets, const char *type);
/* One after the other, each with its share of the time.  A region that fails costs only itself; all
 * of them failing is the call's failure. */
int32_t each_region (const struct ctx *c, const json_t *names,
                     int32_t (*visit) (const struct ctx *, const void *), const void *arg);
int32_t aws_list_offers (void *self, struct gpub_call *, const struct gpub_offer_query *,
                         struct gpub_error *);

/* order.c: what one create will ask for, chosen before anything is sent. */
struct order {
  char region[FIELD_MAX], type[FIELD_MAX], group[FIELD_MAX];
  uint32_t market;
  struct image image;
  uint32_t gib;
  uint64_t besides;  /* disk and address */
  uint64_t spot_max; /* the most that the machine itself may cost at spot */
  json_t *places;    /* [{"zone", "subnet", "price"}], best first */
};
int32_t order_prepare (const struct ctx *c, const struct gpub_create *a, struct order *o);
void order_done (struct order *o);
json_t *order_save (const struct order *o, size_t place);
bool order_load (struct order *o, size_t *place, const json_t *saved);

/* create.c */
int32_t aws_create (void *self, struct gpub_call *, const struct gpub_create *,
                    struct gpub_error *);
void create_key (const char *token, char key[static FIELD_MAX + 16]); /* of its state */
void zone_token (const char *token, const char *zone, char out[static FIELD_MAX + 1]);

/* instance.c: one instance as the SDK's machine. */
bool instance_id (const json_t *row, char id[static FIELD_MAX]);
uint32_t instance_state (const json_t *row);
const char *tag_get (const json_t *row, const char *key);
uint64_t tags_take (const json_t *row, struct gpub_kv *tags, uint64_t max);
/* Ended before it ever ran. */
bool instance_refused (const json_t *row);
/* account: whose it is, which comes back with its ref.  refused: show it as an error, not as its
 * end. */
int32_t instance_emit (const struct ctx *c, const json_t *row, const char *account, uint64_t price,
                       bool refused);

/* machines.c */
bool id_valid (const char *id, const char *prefix);
/* GPUB_E_NOT_FOUND only for what is old enough to be known. */
int32_t instance_read (const struct ctx *c, const struct gpub_ref *ref, json_t **row,
                       char account[static ACCOUNT_MAX]);
int32_t ref_absent (const struct ctx *c, const struct gpub_ref *ref);
int32_t ref_check (const struct ctx *c, const struct gpub_ref *ref);
void filter_ours (struct query *q, const struct gpub_find *f);
bool is_ours (const json_t *row, const struct gpub_find *f);
int32_t aws_get (void *self, struct gpub_call *, const struct gpub_ref *, struct gpub_error *);
int32_t aws_find (void *self, struct gpub_call *, const struct gpub_find *, struct gpub_error *);
int32_t aws_list (void *self, struct gpub_call *, struct gpub_error *);

/* strays.c: disks and spot requests of ours that no machine has. */
int32_t strays_emit (const struct ctx *c, const struct gpub_find *f);
/* Those of a ref that are left; GPUB_E_NOT_FOUND when none is. */
int32_t resources_get (const struct ctx *c, const struct gpub_ref *ref);
int32_t resources_remove (const struct ctx *c, const struct gpub_ref *ref);

/* remove.c */
int32_t aws_remove (void *self, struct gpub_call *, const struct gpub_ref *, struct gpub_error *);
int32_t aws_set_not_after (void *self, struct gpub_call *, const struct gpub_ref *, int64_t ms,
                           struct gpub_error *);
int32_t aws_console_log (void *self, struct gpub_call *, const struct gpub_ref *, char *out,
                         uint64_t cap, uint64_t *len, struct gpub_error *);

#endif
