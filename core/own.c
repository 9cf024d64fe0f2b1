/* own.c - machines that somebody owns: a lease as any other, without a provider and without a price
 *
 * Nothing is ordered, so the attempt exists from the start; nothing is removed, so giving it up is
 * its end.  What is to be on the machine is what its first probe shows.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/broker.h"
#include "core/gpu.h"
#include "core/json.h"

bool
lease_own (const struct lease *l)
{
  return json_object_get (l->request, "host") != NULL;
}

bool
lease_lent_key (const struct lease *l)
{
  return json_bool (json_object_get (l->request, "host"), "identity", false);
}

/* ---- what the probe shows is what is expected from then on ---- */

static int64_t
number (const json_t *facts, const char *name)
{
  return strtoll (json_str (facts, name, "0"), NULL, 10);
}

/* A driver that does not answer yet hides what the bus shows. */
static int64_t
count_gpus (const json_t *facts)
{
  const char *smi = json_str (facts, "gpu_smi", "");
  char *end;
  int64_t n = strtoll (smi, &end, 10);

  return end != smi && !*end ? n : number (facts, "gpu_pci");
}

static json_t *
gpus (const json_t *facts)
{
  const json_t *first = json_array_get (json_object_get (facts, "gpus"), 0);
  int64_t n = count_gpus (facts), mib = json_i64 (first, "memory_mib", 0);
  json_t *j = json_pack ("{s:I}", "count", (json_int_t) n);
  struct gpu g;
  char model[64];

  if (n == 0 || !first)
    return j;
  json_put_str (j, "raw", json_str (first, "name", NULL));
  if (gpu_resolve (json_str (first, "name", ""), &g) == 0) {
    gpu_name (&g, model, sizeof model);
    json_put_str (j, "model", model);
    json_put_str (j, "family", gpu_family (&g));
  }
  if (mib >= 1024)
    json_put_i64 (j, "vram_gib", mib / 1024);
  return j;
}

/* The snapshot in place of an offer's: docs/schema/offer.json. */
static json_t *
offer (const struct lease *l, const json_t *facts)
{
  const char *virt = json_str (facts, "virt", "none");
  char id[24];
  json_t *j;

  snprintf (id, sizeof id, "%08llx", (unsigned long long) l->number);
  j = json_pack ("{s:s, s:s, s:o, s:s, s:s, s:s, s:i, s:b, s:i}", "id", id, "provider",
                 OWN_PROVIDER, "gpu", gpus (facts), "kind",
                 strcmp (virt, "none") == 0 ? "baremetal" : "vm", "market", "on-demand",
                 "availability", "available", "age_ms", 0, "stale", 0, "price_udollar", 0);
  if (facts && number (facts, "vcpus"))
    json_put_i64 (j, "vcpus", number (facts, "vcpus"));
  if (facts && number (facts, "mem_mib"))
    json_put_i64 (j, "ram_gib", number (facts, "mem_mib") / 1024);
  return j;
}

void
own_expect (struct attempt *a, const json_t *facts)
{
  json_decref (a->offer);
  a->offer = offer (a->lease, facts);
  attempt_save (a);
}

/* ---- the attempt ---- */

void
own_commit (struct lease *l)
{
  const json_t *host = json_object_get (l->request, "host");
  int64_t ttl = json_i64 (l->request, "ttl_ms", 0);
  struct attempt *a;
  char name[51];

  if (ttl && l->expires_ms == 0)
    l->expires_ms = now_ms () + ttl;
  a = attempt_new (l);
  attempt_name (a, name);
  set_str (&a->name, name);
  set_str (&a->provider, OWN_PROVIDER);
  set_str (&a->machine.address, json_str (host, "address", NULL));
  set_str (&a->machine.ssh_user, json_str (host, "user", NULL));
  a->machine.ssh_port = json_i64 (host, "port", 22);
  a->offer = offer (l, NULL);
  a->state = ATTEMPT_CREATED;
  a->wanted = true;
  a->started_ms = a->sent_wall_ms = now_ms ();
  attempt_save (a);
  engine_event (l, LEV_COMMITTED);
}

struct lease *
own_lease_at (struct broker *b, const char *address, int64_t port)
{
  for (size_t i = b->leases.n; i-- > 0;) {
    struct lease *l = b->leases.at[i];
    const json_t *host = json_object_get (l->request, "host");
    const struct attempt *a = lease_attempt (l);

    if (lease_ended (l->state))
      continue;
    if (host && strcmp (json_str (host, "address", ""), address) == 0 &&
        json_i64 (host, "port", 22) == port)
      return l;
    if (a && a->machine.address && strcmp (a->machine.address, address) == 0 &&
        (a->machine.ssh_port ? a->machine.ssh_port : 22) == port)
      return l;
  }
  return NULL;
}
