/* offers.h - the live table of what could be rented now
 *
 * One list per provider and scope, replaced when that scope was listed completely; after a partial
 * or failed listing the old offers stay and age.  What the matcher reads is 64 bytes an offer,
 * apart from its texts.  Pointers into the table hold until the next change of that provider, so
 * within one turn of the loop.
 */
#ifndef GPUB_OFFERS_H
#define GPUB_OFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/err.h"
#include "core/gpu.h"
#include "core/memory.h"

#define OFFER_NO_PRICE UINT64_MAX

enum offer_arch { ARCH_UNKNOWN, ARCH_X86_64, ARCH_AARCH64 };

/* Numbers of GPUB_KIND_*, GPUB_MARKET_* and GPUB_AVAIL_* in gpubroker/provider.h.  A count of 0 is
 * "not known", except for gpus: there it is a machine without GPU. */
struct offer {
  uint64_t price_udollar; /* machine + public address; OFFER_NO_PRICE */
  uint64_t key;           /* memory_key() of cloud, region, type, market */
  uint32_t seen_s;        /* when the provider said so, seconds since 1970; 0: listed no longer */
  uint32_t disk_price_udollar; /* per GiB beyond disk_gib; UINT32_MAX: not known */
  uint32_t vram_mib;           /* of one (fractional) GPU */
  uint32_t ram_gib, disk_gib, disk_max_gib;
  uint32_t driver; /* driver_number() */
  struct gpu gpu;
  uint16_t vcpus;
  uint16_t region, country, cloud, fabric, interconnect; /* atoms; 0: not known */
  uint8_t gpus;
  uint8_t kind : 2, market : 1, availability : 2, arch : 2, kubernetes : 1;
};

struct offer_text {
  char id[16]; /* 12 hex digits, stable while provider and offer_ref are */
  const char *ref, *scope, *region, *zone, *cloud, *instance_type, *gpu_raw, *image, *fabric,
      *driver;      /* NULL: not known */
  const char *json; /* OFFER without its price and age, and without the closing brace */
  uint32_t json_len;
  uint32_t caps; /* GPUB_CAP_*, the offer's own; 0 and !caps_known: the provider's hold */
  bool caps_known;
  uint64_t price_ip_udollar; /* in hot->price_udollar */
  uint32_t stock;            /* UINT32_MAX: not known */
  uint32_t boot_max_ms;      /* 0: not known */
};

/* One offer as everybody hands it around. */
struct offer_at {
  const struct offer *hot;
  const struct offer_text *text;
  const char *provider; /* its name in the configuration */
};

enum offers_state {
  OFFERS_STARTING,
  OFFERS_UP,
  OFFERS_DOWN,
  OFFERS_PAUSED,
  OFFERS_BALANCE,
  OFFERS_QUOTA
};

struct offers_config {
  uint32_t stale_ms;  /* from then on flagged; 0: 3 minutes */
  uint32_t expire_ms; /* from then on excluded; 0: 15 minutes */
  uint32_t disk_gib;  /* where the disk is a choice and the request names none; 0: 100 */
};

struct offers;
struct offers *offers_new (const struct offers_config *c);
void offers_free (struct offers *o);
void offers_configure (struct offers *o, const struct offers_config *c);

/* plugin: the underlying cloud of offers that name none.  caps: the provider's GPUB_CAP_*.  Adding
 * again changes caps. */
void offers_provider (struct offers *o, const char *name, const char *plugin, uint32_t caps);
void offers_drop (struct offers *o, const char *name);
/* Not UP: its offers are excluded, with text as the reason.  An unknown name is ignored. */
void offers_state (struct offers *o, const char *name, enum offers_state state, const char *text);

/* A listing as the provider host sends it: begin, any ITEMs, end at RESULT.  An offer that breaks a
 * rule is skipped and counted, the last reason kept. */
void offers_begin (struct offers *o, const char *provider);
/* `item` is an ITEM body with "offers" or "scope". */
void offers_item (struct offers *o, const char *provider, const json_t *item, int64_t now_ms);
/* Not answered: the listing failed; what it brought counts, but it is none. */
void offers_end (struct offers *o, const char *provider, bool answered, int64_t now_ms);

/* All-in hourly price with that disk (0: the default one); OFFER_NO_PRICE when any part is not
 * known. */
uint64_t offers_price (const struct offers *o, const struct offer *offer, uint32_t disk_gib);
/* The size of disk to ask for: what was asked, at least the offer's minimum; 0 where it is fixed.
 */
uint32_t offers_disk (const struct offers *o, const struct offer *offer, uint32_t disk_gib);
/* The all-in price in one raw offer object, as a re-quote brings it. */
uint64_t offers_quote (const struct offers *o, const json_t *raw, uint32_t disk_gib);

/* What failure memory calls an OFFER of a provider: the key is that of the table.  Borrows from
 * both. */
struct memory_what offers_what (const struct offers *o, const char *provider, const json_t *offer);

/* By short id or by provider + ref. */
bool offers_find (const struct offers *o, const char *id, struct offer_at *out);
bool offers_find_ref (const struct offers *o, const char *provider, const char *ref,
                      struct offer_at *out);

/* Appends OFFER, price for that disk and age included, to a growing buffer. */
struct offers_out {
  char *at;
  size_t len, cap;
};
void offers_print (const struct offers *o, const struct offer_at *a, uint32_t disk_gib,
                   int64_t now_ms, struct offers_out *out);
/* The same as an object of its own: what an attempt keeps. */
json_t *offers_json (const struct offers *o, const struct offer_at *a, uint32_t disk_gib,
                     int64_t now_ms);

struct offers_info {
  uint32_t count, skipped;
  bool complete;       /* the last listing was complete in every scope */
  int64_t listed_ms;   /* when it ended; 0: never */
  const char *problem; /* why the last skipped offer was; NULL */
};
bool offers_info (const struct offers *o, const char *provider, struct offers_info *out);
uint32_t offers_count (const struct offers *o);
/* [{"name":RAW,"offers":N}…]: raw GPU names that the table does not know.  Caller owns it. */
json_t *offers_unknown_gpus (const struct offers *o);

#endif
