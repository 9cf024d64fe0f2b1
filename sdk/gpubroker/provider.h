/* gpubroker/provider.h - what a provider plugin sees, and all of it
 *
 * A plugin exports one function, gpub_provider_entry().  Everything else goes through two tables:
 * the plugin's struct gpub_provider and the host's struct gpub_host.  Rules that hold for the whole
 * file:
 *
 *  - Every struct starts with `size`.  Arguments: set by the host.  Emitted structs: set by the
 * plugin to its own sizeof.  Out-structs: whoever gives the memory sets size, the other side writes
 * below it.  Members are only ever appended, so whoever reads a member beyond the other side's
 * `size` must first ask GPUB_HAS().
 *  - Arrays of structs are (pointer, count, stride): walk them with GPUB_AT(), never with [i].
 *    The one exception is struct gpub_kv, which is frozen for ever.
 *  - Nothing allocated on one side is freed on the other.  Arguments live until the call returns;
 * what is emitted is copied by the host before emit returns; a response lives until the plugin's
 * call returns.
 *  - Strings are UTF-8, NUL-ended; a NULL string means "not known".
 *  - Money is micro-dollars (u64 1,000,000 = 1 USD), prices are per hour.  Times are milliseconds
 * since 1970 UTC.  Disk is GiB, memory MiB.
 *  - A call returns one of GPUB_OK / GPUB_E_*; the kind decides what the broker does next, the text
 * in struct gpub_error is for people.  Say GPUB_E_UNKNOWN rather than guess after a sent mutation.
 *  - Calls on one `self` run at once in up to `max_parallel` threads; open and close never overlap
 * anything. Plugins start no threads, install no signal handlers and no atexit, and are never
 * unloaded.
 *  - LP64, little-endian.  No enum, bool, time_t or third-party type crosses the line.
 *
 * ABI 1 is frozen: members are only appended, values never change their meaning.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef GPUBROKER_PROVIDER_H
#define GPUBROKER_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUB_ABI 1u /* raised only when an old plugin must be refused */

/* Does *p, whose writer knew only p->size bytes of it, have this member? */
#define GPUB_HAS(p, member)                                                                        \
 ((p)->size >= offsetof (__typeof__ (*(p)), member) + sizeof ((p)->member))
/* The i-th element of an array with a stride. */
#define GPUB_AT(type, array, stride, i)                                                            \
 ((const type *) (const void *) ((const char *) (array) + (uint64_t) (i) * (stride)))

/* ---- Error kinds: the return value of every call ---- */

#define GPUB_OK             0
#define GPUB_E_INVALID      1  /* the request is wrong; repeating it cannot help */
#define GPUB_E_AUTH         2  /* credentials missing, wrong or without the right */
#define GPUB_E_NOT_FOUND    3  /* get: proven gone; remove of an absent machine is GPUB_OK */
#define GPUB_E_CONFLICT     4  /* same token, other parameters */
#define GPUB_E_QUOTA        5  /* the account's limit, or its money */
#define GPUB_E_CAPACITY     6  /* the cloud's stock */
#define GPUB_E_RATE_LIMITED 7  /* see retry_after_ms */
#define GPUB_E_UNAVAILABLE  8  /* transient, and nothing was changed */
#define GPUB_E_UNKNOWN      9  /* a change may have been made: reconcile before any retry */
#define GPUB_E_CANCELLED    10 /* cancelled or past its deadline, before anything was sent */
#define GPUB_E_UNSUPPORTED  11
#define GPUB_E_INTERNAL     12 /* a fault of the plugin or the host; counts towards quarantine */

struct gpub_error { /* the host's memory; the plugin only fills it */
  uint64_t size;
  int32_t http_status;     /* 0 when no answer was read */
  uint32_t retry_after_ms; /* 0 when the cloud named no delay */
  uint32_t flags;          /* none defined */
  uint32_t reserved;
  char provider_code[64]; /* the cloud's own code, verbatim */
  char request_id[64];    /* the cloud's request id, for its support */
  char text[256];         /* no newline, no full stop, no secret */
};

struct gpub_kv { /* frozen for ever */
  const char *key;
  const char *value;
};

struct gpub_call; /* opaque: deadline, cancellation, log context of one call */

/* ---- Options: a plugin declares them, the host parses, checks and documents them ---- */

#define GPUB_OPT_STRING   0u
#define GPUB_OPT_INT      1u
#define GPUB_OPT_BOOL     2u /* "true" or "false" */
#define GPUB_OPT_DURATION 3u /* "90s", "5m", "2h"; reaches the plugin in milliseconds */
#define GPUB_OPT_MONEY    4u /* dollars; reaches the plugin in micro-dollars */
#define GPUB_OPT_LIST     5u /* reaches the plugin as a JSON array of strings */
#define GPUB_OPT_JSON     6u /* any group or list; reaches the plugin as JSON */

#define GPUB_OPT_REQUIRED 1u
#define GPUB_OPT_SECRET                                                                            \
 2u /* configured as NAME_file, NAME_env or NAME_credential; read with host->secret */

struct gpub_option {
  uint64_t size;
  const char *name; /* [a-z0-9_]+; the name given to gpub_config and gpub_host.secret */
  uint32_t type;    /* GPUB_OPT_* */
  uint32_t flags;
  const char *default_value; /* as text, NULL for none */
  const char *help;          /* one line */
};

struct gpub_config { /* every declared option that has a value; secrets are not among them */
  uint64_t size;
  const struct gpub_kv *values;
  uint64_t count;
  const char *provider; /* the name of this provider in the configuration */
  const char *owner;    /* installation uuid: the mark on everything we own */
};

/* ---- Capabilities: what the provider can do; an offer may narrow them ---- */

#define GPUB_CAP_IDEMPOTENT_CREATE (1ull << 0) /* the cloud itself dedupes creates by our token */
#define GPUB_CAP_TAGS              (1ull << 1) /* machines carry our tags and list returns them */
#define GPUB_CAP_USER_DATA         (1ull << 2) /* cloud-init user-data at first boot */
#define GPUB_CAP_STARTUP_SCRIPT    (1ull << 3) /* a root script run by the provider's own agent */
#define GPUB_CAP_SPOT              (1ull << 4)
#define GPUB_CAP_OPEN_PORTS        (1ull << 5) /* create honours `ports` */
#define GPUB_CAP_KILL_SWITCH       (1ull << 6) /* not_after_ms ends the machine without us */
#define GPUB_CAP_CONSOLE           (1ull << 7)
#define GPUB_CAP_HOSTS_KUBERNETES  (1ull << 8) /* a whole machine with systemd, not a container */
#define GPUB_CAP_REUSED                                                                            \
 (1ull << 9) /* the machine outlives the lease: the broker cleans it before remove */

/* user_data_flags */
#define GPUB_USER_DATA_PLAIN        1u
#define GPUB_USER_DATA_GZIP_OK      2u
#define GPUB_USER_DATA_AFTER_ACTIVE 4u /* runs only once the machine is active */

/* ---- Things that go to a plugin ---- */

struct gpub_resource { /* something besides the machine that exists, and perhaps bills, because of
                          it */
  uint64_t size;
  const char *kind; /* "disk", "address", "key", "rule", "nic", "spot-request", ... */
  const char *id;
  const char *scope;
  uint64_t price_udollar; /* per hour; 0 when it costs nothing or is unknown */
  uint32_t billable;      /* 0 or 1 */
  uint32_t reserved;
  const struct gpub_kv *tags; /* its own, where list emits it without a machine: whose is it? */
  uint64_t ntags;
};

struct gpub_ref { /* one machine, as the broker remembers it */
  uint64_t size;
  const char *id;    /* the cloud's id; "" when only the token is known, or only resources */
  const char *scope; /* region, project or zone; as the plugin emitted it */
  const char *name;
  const char *token;
  const char *plugin_data; /* <= 1 KiB, as emitted */
  int64_t created_ms;
  const struct gpub_resource *resources;
  uint64_t nresources;
  uint64_t resources_stride;
};

struct gpub_port {
  uint64_t size;
  const char *proto; /* "tcp" or "udp" */
  uint32_t from;
  uint32_t to;
  const char *cidr;
};

struct gpub_offer_query {
  uint64_t size;
  const char *offer_ref; /* NULL: everything; else re-quote this one offer */
  uint32_t disk_gib;     /* a hint for providers that price the disk */
  uint32_t reserved;
};

#define GPUB_DATA_NONE   0u
#define GPUB_DATA_CLOUD  1u /* cloud-init user-data */
#define GPUB_DATA_SCRIPT 2u /* starts with #! */

struct gpub_create {
  uint64_t size;
  const char *offer_ref;
  uint64_t max_price_udollar; /* refuse (CAPACITY) a machine that now costs more per hour, all in */
  const char *token;          /* unique for this attempt; same token = same bytes */
  const char *name;           /* DNS-1123, <= 50 characters, starts with "gpub-" */
  const struct gpub_kv *tags; /* put them on the machine and on every resource that takes tags */
  uint64_t ntags;
  const char *const *ssh_public_keys; /* the broker's own first */
  uint64_t nssh_public_keys;
  const void *user_data; /* raw bytes */
  uint64_t user_data_len;
  uint32_t user_data_kind; /* GPUB_DATA_* */
  uint32_t disk_gib;       /* 0: the offer's default */
  const char *image;       /* NULL: the offer's */
  const struct gpub_port *ports;
  uint64_t nports;
  uint64_t ports_stride;
  int64_t not_after_ms; /* 0: none.  With KILL_SWITCH the cloud ends the machine then */
};

struct gpub_find {
  uint64_t size;
  const char *token;
  const char *name;
  const char *scope; /* NULL: every scope */
};

/* ---- Things a plugin emits ---- */

#define GPUB_KIND_VM        0u
#define GPUB_KIND_BAREMETAL 1u
#define GPUB_KIND_CONTAINER 2u

#define GPUB_MARKET_ON_DEMAND 0u
#define GPUB_MARKET_SPOT      1u

#define GPUB_AVAIL_UNKNOWN   0u
#define GPUB_AVAIL_NONE      1u
#define GPUB_AVAIL_LOW       2u
#define GPUB_AVAIL_AVAILABLE 3u

/* known bits of gpub_offer: a number without its bit is "not known", which is not zero */
#define GPUB_OFFER_PRICE      (1ull << 0) /* price_udollar */
#define GPUB_OFFER_DISK_PRICE (1ull << 1)
#define GPUB_OFFER_IP_PRICE   (1ull << 2)
#define GPUB_OFFER_GPUS       (1ull << 3) /* gpu_count; known and 0: a machine without GPU */
#define GPUB_OFFER_VRAM       (1ull << 4)
#define GPUB_OFFER_VCPUS      (1ull << 5)
#define GPUB_OFFER_RAM        (1ull << 6)
#define GPUB_OFFER_DISK       (1ull << 7)
#define GPUB_OFFER_STOCK      (1ull << 8)
#define GPUB_OFFER_CAPS       (1ull << 9) /* caps; else the provider's own hold */
#define GPUB_OFFER_BOOT       (1ull << 10)

struct gpub_offer { /* one machine that could be rented now */
  uint64_t size;
  uint64_t known;        /* GPUB_OFFER_* */
  const char *offer_ref; /* printable, <= 512 bytes, means the same after any restart */
  const char *scope;
  const char *region; /* as the cloud spells it */
  const char *zone;
  const char *country;       /* ISO 3166 alpha-2 */
  const char *cloud;         /* the underlying cloud, where the provider is an aggregator */
  const char *instance_type; /* for people and for failure memory */
  const char *gpu_name;      /* raw, as the cloud spells it; the broker resolves it */
  uint64_t vram_mib;         /* per GPU */
  uint64_t ram_mib;          /* of the host */
  uint32_t gpu_count;
  uint32_t gpu_denominator; /* 0 or 1: whole GPUs; N: each is 1/N of a card */
  uint32_t vcpus;
  uint32_t kind;         /* GPUB_KIND_* */
  uint32_t market;       /* GPUB_MARKET_* */
  uint32_t availability; /* GPUB_AVAIL_* */
  uint32_t stock;
  uint32_t disk_gib;     /* included; the minimum where disk_max_gib is larger */
  uint32_t disk_max_gib; /* 0: fixed */
  uint32_t disk_default_gib;
  const char *arch;                /* "x86_64" or "aarch64" */
  const char *interconnect;        /* "pcie", "sxm5", "nvlink", "infiniband", ... */
  const char *currency;            /* NULL: USD; another one counts as price not known */
  uint64_t price_udollar;          /* the whole machine, all its GPUs */
  uint64_t price_disk_gib_udollar; /* per GiB beyond disk_gib */
  uint64_t price_ip_udollar;
  uint64_t caps;
  const char *image;
  const char *driver; /* NVIDIA driver version in that image */
  const char *fabric; /* name of a network profile, e.g. "hyperstack" */
  uint32_t boot_min_ms;
  uint32_t boot_max_ms;
};

#define GPUB_STATE_UNKNOWN  0u /* any status this plugin does not know: never fatal */
#define GPUB_STATE_CREATING 1u
#define GPUB_STATE_RUNNING  2u
#define GPUB_STATE_STOPPING 3u
#define GPUB_STATE_STOPPED  4u /* most clouds still bill it */
#define GPUB_STATE_DELETING 5u
#define GPUB_STATE_GONE     6u
#define GPUB_STATE_ERROR    7u

#define GPUB_MACHINE_PRICE     (1ull << 0)
#define GPUB_MACHINE_SSH_PORT  (1ull << 1)
#define GPUB_MACHINE_CREATED   (1ull << 2)
#define GPUB_MACHINE_NOT_AFTER (1ull << 3) /* the kill switch as the cloud has it */
#define GPUB_MACHINE_SPENT     (1ull << 4)

struct gpub_machine {
  uint64_t size;
  uint64_t known; /* GPUB_MACHINE_* */
  const char *id;
  const char *scope;
  const char *name;
  uint32_t state;     /* GPUB_STATE_* */
  uint32_t fail_kind; /* GPUB_E_*: why it failed, where the cloud says so; GPUB_OK otherwise */
  const char *raw_state;
  const char *fail_text;
  const char *address; /* public IPv4, IPv6 or DNS name; NULL while there is none */
  const char *private_address;
  const char *ssh_user;
  uint32_t ssh_port;
  uint32_t reserved;
  uint64_t price_udollar;
  uint64_t spent_udollar; /* as the cloud counts it */
  int64_t created_ms;
  int64_t not_after_ms;
  const struct gpub_kv *tags;
  uint64_t ntags;
  const struct gpub_resource *resources;
  uint64_t nresources;
  uint64_t resources_stride;
  const char *plugin_data; /* <= 1 KiB, given back in gpub_ref */
  const char *region;
  const char *cloud;
  const char *instance_type;
};

/* How far a listing of one scope came.  Only COMPLETE proves that what is missing is absent. */
#define GPUB_SCOPE_COMPLETE 0u
#define GPUB_SCOPE_PARTIAL  1u
#define GPUB_SCOPE_FAILED   2u

struct gpub_identity { /* out-struct of probe */
  uint64_t size;
  char account[128];
  char text[256];
  uint64_t balance_udollar;
  uint64_t known; /* GPUB_IDENTITY_* */
};
#define GPUB_IDENTITY_BALANCE (1ull << 0)

/* ---- HTTP, done by the host ---- */

#define GPUB_HTTP_SAFE             1u /* no effect: the host may retry it */
#define GPUB_HTTP_MUTATES          2u /* an effect: sent at most once, on a fresh connection */
#define GPUB_HTTP_HTTP2_REQUIRED   4u
#define GPUB_HTTP_PLAIN_LINK_LOCAL 8u /* allow http:// to 169.254.0.0/16 and fd00:ec2::254 */

#define GPUB_SENT_NO       0u /* nothing left this machine */
#define GPUB_SENT_MAYBE    1u /* sent, no definitive answer */
#define GPUB_SENT_ANSWERED 2u

struct gpub_http_request {
  uint64_t size;
  const char *method;
  const char *url; /* https:// unless the endpoint was overridden in the configuration */
  const struct gpub_kv *headers;
  uint64_t nheaders;
  const void *body;
  uint64_t body_len;
  uint32_t flags;      /* GPUB_HTTP_*; exactly one of SAFE and MUTATES */
  uint32_t timeout_ms; /* 0: what the call has left */
  uint64_t max_body;   /* 0: 16 MiB; a longer answer fails the request */
  /* With on_body the answer streams and response.body is NULL; non-zero stops the transfer. */
  int (*on_body) (void *ctx, const void *bytes, uint64_t len);
  void *on_body_ctx;
};

struct gpub_http_response { /* the plugin's memory: it sets size, the host fills the rest */
  uint64_t size;            /* what it points at lives until the plugin's call returns */
  int32_t status;           /* 0 when no answer was read */
  uint32_t http_version;    /* 11, 20, 30 */
  uint32_t sent;            /* GPUB_SENT_* */
  uint32_t retry_after_ms;
  const struct gpub_kv *headers; /* of the final block; names in lower case */
  uint64_t nheaders;
  const struct gpub_kv *trailers;
  uint64_t ntrailers;
  const void *body; /* NUL-ended beyond body_len for convenience */
  uint64_t body_len;
};

/* ---- The host's side ---- */

#define GPUB_LOG_DEBUG   0
#define GPUB_LOG_INFO    1
#define GPUB_LOG_WARNING 2
#define GPUB_LOG_ERROR   3

/* Every function takes the call it serves; all may be used from any thread that runs a call. */
struct gpub_host {
  uint64_t size;
  uint32_t abi;
  uint32_t reserved;

  /* event: a dotted name; text: "key=value ...".  Registered secrets are masked. */
  void (*log) (struct gpub_call *, int32_t level, const char *event, const char *text);
  int32_t (*cancelled) (struct gpub_call *);          /* 1 once cancelled or past the deadline */
  uint32_t (*ms_left) (struct gpub_call *);           /* 0 past the deadline */
  int32_t (*sleep) (struct gpub_call *, uint32_t ms); /* GPUB_OK, or GPUB_E_CANCELLED at once */
  int64_t (*now_ms) (struct gpub_call *);

  /* Non-zero from an emit means: stop and return what it returned. */
  int32_t (*emit_offer) (struct gpub_call *, const struct gpub_offer *);
  int32_t (*emit_machine) (struct gpub_call *, const struct gpub_machine *);
  /* Durable in the broker's books before it returns. */
  int32_t (*emit_resource) (struct gpub_call *, const struct gpub_resource *);
  /* err may be NULL; kind is the GPUB_E_* that PARTIAL or FAILED ended with. */
  int32_t (*scope_done) (struct gpub_call *, const char *scope, uint32_t how, int32_t kind,
                         const struct gpub_error *err);

  /* GPUB_OK once an answer was read, whatever its status; else the kind, with err filled. */
  int32_t (*http) (struct gpub_call *, const struct gpub_http_request *,
                   struct gpub_http_response *, struct gpub_error *err);

  /* The bytes of a SECRET option, valid until the plugin's call returns.  GPUB_E_NOT_FOUND when
   * unset. */
  int32_t (*secret) (struct gpub_call *, const char *option, const void **bytes, uint64_t *len);

  /* A small durable store per provider, <= 64 KiB a key, no secrets.  Put is on disk before it
   * returns; put with bytes NULL removes.  Got bytes live until the plugin's call returns. */
  int32_t (*state_get) (struct gpub_call *, const char *key, const void **bytes, uint64_t *len);
  int32_t (*state_put) (struct gpub_call *, const char *key, const void *bytes, uint64_t len);
};

/* ---- The plugin's side ---- */

struct gpub_provider {
  uint64_t size; /* sizeof, as the plugin was compiled */
  uint32_t abi;  /* GPUB_ABI, likewise */
  uint32_t flags;
  const char *name;
  const char *version;
  const char *description;
  const struct gpub_option *options;
  uint64_t noptions;
  uint64_t options_stride;
  uint64_t caps;
  uint32_t max_parallel;         /* calls at once on one self; 0 and 1 mean serialised */
  uint32_t visibility_lag_ms;    /* how long a created machine may be missing from find and list */
  uint32_t idempotency_window_s; /* how long the cloud remembers a token, with IDEMPOTENT_CREATE */
  uint32_t user_data_max;        /* raw bytes */
  uint32_t user_data_flags;
  uint32_t reserved;

  /* Checks options only, no traffic.  *self is the plugin's. */
  int32_t (*open) (const struct gpub_host *, struct gpub_call *, const struct gpub_config *,
                   void **self, struct gpub_error *);
  void (*close) (void *self);
  /* The cheapest call that proves the credentials. */
  int32_t (*probe) (void *self, struct gpub_call *, struct gpub_identity *, struct gpub_error *);
  /* emit_offer for each, scope_done for each scope. */
  int32_t (*list_offers) (void *self, struct gpub_call *, const struct gpub_offer_query *,
                          struct gpub_error *);
  /* Emits the machine as soon as an id exists and returns once the cloud accepted.
   * An error after an emit means "exists and failed": the broker removes it. */
  int32_t (*create) (void *self, struct gpub_call *, const struct gpub_create *,
                     struct gpub_error *);
  /* Emits the machine, or returns GPUB_E_NOT_FOUND when the cloud says that it is gone.  For a ref
   * without id: each of its resources that is left, or GPUB_E_NOT_FOUND. */
  int32_t (*get) (void *self, struct gpub_call *, const struct gpub_ref *, struct gpub_error *);
  /* Emits every machine, and every resource without one, that carries the token (or, without tags,
   * the name); scope_done for each scope. */
  int32_t (*find) (void *self, struct gpub_call *, const struct gpub_find *, struct gpub_error *);
  /* Emits every machine and every stray resource with any gpubroker mark; scope_done for each
   * scope. */
  int32_t (*list) (void *self, struct gpub_call *, struct gpub_error *);
  /* Ends the machine and its resources; without id the resources alone.  GPUB_OK: the cloud
   * accepted, or it is already gone. */
  int32_t (*remove) (void *self, struct gpub_call *, const struct gpub_ref *, struct gpub_error *);
  /* Optional from here: NULL means unsupported. */
  int32_t (*set_not_after) (void *self, struct gpub_call *, const struct gpub_ref *, int64_t ms,
                            struct gpub_error *);
  /* Appends text of the machine's console to out; the host gives cap, the plugin sets *len. */
  int32_t (*console_log) (void *self, struct gpub_call *, const struct gpub_ref *, char *out,
                          uint64_t cap, uint64_t *len, struct gpub_error *);
};

/* Tags that the broker puts on every machine it creates (gpub_create.tags). */
#define GPUB_TAG_OWNER "gpubroker-owner" /* installation uuid */
#define GPUB_TAG_LEASE "gpubroker-lease" /* lease number, decimal, monotonic */
#define GPUB_TAG_TOKEN "gpubroker-token" /* the attempt's token */

#if defined(__GNUC__)
# define GPUB_EXPORT __attribute__ ((__visibility__ ("default")))
#else
# define GPUB_EXPORT
#endif

/* NULL when the plugin cannot live with this host's ABI. */
GPUB_EXPORT const struct gpub_provider *gpub_provider_entry (uint32_t host_abi);

#ifdef __cplusplus
}
#endif
#endif
