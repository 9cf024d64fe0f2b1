/* instance.c - a Shadeform instance as a machine
 *
 * Members come and go and are null before the instance is active, whatever the specification says;
 * statuses were added twice in a year.  Only `id` is needed.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugins/shadeform/shadeform.h"
#include "plugins/tags.h"

enum { UDOLLAR_PER_CENT = 10000 };

static const struct plug_word states[] = {
  { "creating", GPUB_STATE_CREATING }, { "pending_provider", GPUB_STATE_CREATING },
  { "pending", GPUB_STATE_CREATING },  { "active", GPUB_STATE_RUNNING },
  { "error", GPUB_STATE_ERROR },       { "deleting", GPUB_STATE_DELETING },
  { "deleted", GPUB_STATE_GONE },
};

/* What may be put into a path: an id that names another endpoint must never be followed. */
bool
id_valid (const char *id)
{
  size_t n = strlen (id);

  for (size_t i = 0; i < n; i++)
    if (!isalnum ((unsigned char) id[i]) && id[i] != '-' && id[i] != '_')
      return false;
  return n > 0 && n <= 128;
}

static uint32_t
state_of (const char *status)
{
  return plug_word (states, N_ELEMENTS (states), status, GPUB_STATE_UNKNOWN);
}

bool
instance_deleted (const json_t *instance)
{
  return state_of (json_str (instance, "status", "")) == GPUB_STATE_GONE;
}

const json_t *
instance_tags (const json_t *instance)
{
  return json_object_get (instance, "tags");
}

/* rental_terms has what this instance pays; hourly_price is the type's on-demand price, true for no
 * spot machine. */
static void
fill_price (struct gpub_machine *m, const json_t *instance)
{
  const json_t *terms = json_object_get (instance, "rental_terms");
  int64_t cents = json_i64 (instance, "hourly_price", 0);
  bool on_demand = strcmp (json_str (terms, "rental_type", "on_demand"), "on_demand") == 0;

  if (udollar_parse (json_str (terms, "hourly_price", ""), &m->price_udollar))
    m->known |= GPUB_MACHINE_PRICE;
  else if (on_demand && cents > 0 && cents < INT32_MAX) {
    m->price_udollar = (uint64_t) cents * UDOLLAR_PER_CENT;
    m->known |= GPUB_MACHINE_PRICE;
  }
  if (udollar_parse (json_str (instance, "cost_estimate", ""), &m->spent_udollar))
    m->known |= GPUB_MACHINE_SPENT;
}

static void
fill_times (struct gpub_machine *m, const json_t *instance)
{
  const char *created = json_str (instance, "created_at", "");
  const char *until = json_str (json_object_get (instance, "auto_delete"), "date_threshold", "");

  if (rfc3339_parse (created, &m->created_ms))
    m->known |= GPUB_MACHINE_CREATED;
  if (rfc3339_parse (until, &m->not_after_ms))
    m->known |= GPUB_MACHINE_NOT_AFTER;
}

/* An address counts only together with its port, which is null as often as 22. */
static void
fill_address (struct gpub_machine *m, const json_t *instance)
{
  const char *address = json_str (instance, "ip", "");
  int64_t port = json_i64 (instance, "ssh_port", 22);

  if (*address == '\0')
    return;
  m->address = address;
  m->ssh_port = port > 0 && port < 65536 ? (uint32_t) port : 22;
  m->known |= GPUB_MACHINE_SSH_PORT;
}

static void
fill_failure (struct gpub_machine *m, const json_t *instance)
{
  const char *details = json_str (instance, "status_details", "");

  if (strcmp (details, "preempted") == 0)
    m->fail_kind = GPUB_E_CAPACITY;
  else if (m->state == GPUB_STATE_ERROR)
    m->fail_kind = (uint32_t) plug_kind_of_text (details);
  else
    return;
  m->fail_text = *details ? details : NULL;
}

int32_t
instance_emit (const struct ctx *c, const json_t *instance)
{
  json_auto_t *text = json_array ();
  struct gpub_kv tags[TAGS_MAX];
  const char *status = json_str (instance, "status", "");
  struct gpub_machine m = {
    .size = sizeof m,
    .id = json_str (instance, "id", ""),
    .scope = SCOPE,
    .name = json_str (instance, "name", NULL),
    .state = state_of (status),
    .raw_state = status,
    .ssh_user = json_str (instance, "ssh_user", "shadeform"),
    .tags = tags,
    .ntags = tags_split (instance_tags (instance), text, tags),
    .region = json_str (instance, "region", NULL),
    .cloud = json_str (instance, "cloud", NULL),
    .instance_type = json_str (instance, "shade_instance_type", NULL),
  };

  fill_price (&m, instance);
  fill_times (&m, instance);
  fill_address (&m, instance);
  fill_failure (&m, instance);
  return c->s->host->emit_machine (c->call, &m);
}
