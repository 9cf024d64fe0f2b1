/* instance.c - an EC2 instance as a machine
 *
 * A word that is new to us is an unknown state, never an error.  What is terminated says why, and
 * some reasons are a refusal that came late.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { TAGS_MOST = 60 };

static const struct plug_word states[] = {
  { "pending", GPUB_STATE_CREATING },       { "running", GPUB_STATE_RUNNING },
  { "shutting-down", GPUB_STATE_DELETING }, { "terminated", GPUB_STATE_GONE },
  { "stopping", GPUB_STATE_STOPPING },      { "stopped", GPUB_STATE_STOPPED },
};

/* late: the machine never ran, so this is a refusal and no end. */
static const struct {
  const char *code;
  int32_t kind;
  bool late;
} reasons[] = {
  { "Server.InsufficientInstanceCapacity", GPUB_E_CAPACITY, true },
  { "Server.InternalError", GPUB_E_CAPACITY, true },
  { "Client.VolumeLimitExceeded", GPUB_E_QUOTA, true },
  { "Client.InternalError", GPUB_E_INVALID, true },
  { "Server.SpotInstanceTermination", GPUB_E_CAPACITY, false },
};

static bool
ended (uint32_t state)
{
  return state == GPUB_STATE_GONE || state == GPUB_STATE_DELETING;
}

bool
instance_refused (const json_t *row)
{
  for (size_t i = 0; ended (instance_state (row)) && i < N_ELEMENTS (reasons); i++)
    if (strcmp (sub_str (row, "stateReason", "code", ""), reasons[i].code) == 0)
      return reasons[i].late;
  return false;
}

bool
instance_id (const json_t *row, char id[static FIELD_MAX])
{
  const char *text = json_str (row, "instanceId", "");

  if (!id_valid (text, "i-"))
    return false;
  snprintf (id, FIELD_MAX, "%s", text);
  return true;
}

uint32_t
instance_state (const json_t *row)
{
  return plug_word (states, N_ELEMENTS (states), sub_str (row, "instanceState", "name", ""),
                    GPUB_STATE_UNKNOWN);
}

const char *
tag_get (const json_t *row, const char *key)
{
  const json_t *tag;
  size_t i;

  json_array_foreach (json_object_get (row, "tagSet"), i, tag)
    if (strcmp (json_str (tag, "key", ""), key) == 0)
      return json_str (tag, "value", "");
  return NULL;
}

uint64_t
tags_take (const json_t *row, struct gpub_kv *tags, uint64_t max)
{
  const json_t *tag;
  size_t i;
  uint64_t n = 0;

  json_array_foreach (json_object_get (row, "tagSet"), i, tag)
    if (n < max && *json_str (tag, "key", ""))
      tags[n++] = (struct gpub_kv){ json_str (tag, "key", ""), json_str (tag, "value", "") };
  return n;
}

static const char *
some (const char *text)
{
  return *text ? text : NULL;
}

/* What EC2 says of a new one is seconds old at most; its own time is the better one. */
static void
fill_times (const struct ctx *c, struct gpub_machine *m, const json_t *row)
{
  const char *end = tag_get (row, TAG_NOT_AFTER);

  if (!rfc3339_parse (json_str (row, "launchTime", ""), &m->created_ms))
    m->created_ms = m->state == GPUB_STATE_CREATING ? c->s->host->now_ms (c->call) : 0;
  m->known |= m->created_ms ? GPUB_MACHINE_CREATED : 0;
  if (end && strspn (end, "0123456789") == strlen (end) && *end && strlen (end) < 13) {
    m->not_after_ms = strtoll (end, NULL, 10) * 1000;
    m->known |= GPUB_MACHINE_NOT_AFTER;
  }
}

/* Anybody may write a tag, so it is read like anything else from outside. */
static void
fill_price (struct gpub_machine *m, const json_t *row)
{
  const char *text = tag_get (row, TAG_PRICE);

  if (m->known & GPUB_MACHINE_PRICE || !text || strlen (text) > 12 || !*text ||
      strspn (text, "0123456789") != strlen (text))
    return;
  m->price_udollar = strtoull (text, NULL, 10);
  m->known |= GPUB_MACHINE_PRICE;
}

static void
fill_reason (struct gpub_machine *m, const json_t *row)
{
  for (size_t i = 0; ended (m->state) && i < N_ELEMENTS (reasons); i++)
    if (strcmp (sub_str (row, "stateReason", "code", ""), reasons[i].code) == 0)
      m->fail_kind = (uint32_t) reasons[i].kind;
  if (ended (m->state))
    m->fail_text = some (sub_str (row, "stateReason", "message", ""));
}

int32_t
instance_emit (const struct ctx *c, const json_t *row, const char *account, uint64_t price,
               bool refused)
{
  const char *request = json_str (row, "spotInstanceRequestId", "");
  const struct gpub_resource spot = {
    .size = sizeof spot, .kind = "spot-request", .id = request, .scope = c->region
  };
  struct gpub_kv tags[TAGS_MOST];
  struct gpub_machine m = {
    .size = sizeof m,
    .known = GPUB_MACHINE_SSH_PORT | (price ? GPUB_MACHINE_PRICE : 0),
    .id = json_str (row, "instanceId", ""),
    .scope = c->region,
    .name = tag_get (row, "Name"),
    .state = instance_state (row),
    .raw_state = sub_str (row, "instanceState", "name", ""),
    .address = some (json_str (row, "ipAddress", "")),
    .private_address = some (json_str (row, "privateIpAddress", "")),
    .ssh_user = c->s->ssh_user,
    .ssh_port = 22,
    .price_udollar = price,
    .tags = tags,
    .ntags = tags_take (row, tags, TAGS_MOST),
    .resources = id_valid (request, "sir-") ? &spot : NULL,
    .nresources = id_valid (request, "sir-"),
    .resources_stride = sizeof spot,
    .plugin_data = some (account),
    .region = c->region,
    .cloud = "aws",
    .instance_type = some (json_str (row, "instanceType", "")),
  };

  fill_times (c, &m, row);
  fill_price (&m, row);
  fill_reason (&m, row);
  if (refused)
    m.state = GPUB_STATE_ERROR;
  return c->s->host->emit_machine (c->call, &m);
}
