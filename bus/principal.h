/* principal.h - who may ask, and how much
 *
 * A principal is found by the User-Id that the ZAP handler gave its connection ("uid:1000"), at
 * every request: that is how a revoked one is denied on a connection that is still open.
 */
#ifndef GPUB_PRINCIPAL_H
#define GPUB_PRINCIPAL_H

#include <stdint.h>

#include "bus/bus.h"

struct principal {
  char user_id[32];
  char name[64];
  enum bus_rights rights;
  double tokens;
  int64_t filled_ms;
  uint32_t inflight;
  int listed;
};

struct principals {
  struct principal **at; /* each keeps its place for life: sessions point to it */
  size_t n, cap;
  double rate, burst;
};

/* Those that are not in the list any more stay, with listed 0, until principals_sweep. */
void principals_load (struct principals *p, const struct bus_uid *uids, size_t n);
void principals_sweep (struct principals *p);
void principals_done (struct principals *p);

struct principal *principals_find (const struct principals *p, const char *user_id);

/* Takes a token: 0, or the milliseconds until there is one. */
uint32_t principal_take (const struct principals *p, struct principal *who, int64_t now_ms);

#endif
