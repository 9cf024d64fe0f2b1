/* vm.c - a Hyperstack virtual machine as a machine
 *
 * ACTIVE comes before the address does, and SHUTOFF is billed like ACTIVE.  A word that is new to
 * us is an unknown state, never an error.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"
#include "plugins/tags.h"

static const struct plug_word states[] = {
  { "CREATING", GPUB_STATE_CREATING },    { "BUILD", GPUB_STATE_CREATING },
  { "STARTING", GPUB_STATE_CREATING },    { "RESTORING", GPUB_STATE_CREATING },
  { "ACTIVE", GPUB_STATE_RUNNING },       { "REBOOTING", GPUB_STATE_RUNNING },
  { "HARD_REBOOT", GPUB_STATE_RUNNING },  { "STOPPING", GPUB_STATE_STOPPING },
  { "HIBERNATING", GPUB_STATE_STOPPING }, { "SHUTOFF", GPUB_STATE_STOPPED },
  { "HIBERNATED", GPUB_STATE_STOPPED },   { "DELETING", GPUB_STATE_DELETING },
  { "DELETED", GPUB_STATE_GONE },         { "ERROR", GPUB_STATE_ERROR },
};

/* What vm_state makes of ACTIVE, which lags behind it. */
static const struct plug_word details[] = {
  { "", GPUB_STATE_RUNNING },
  { "active", GPUB_STATE_RUNNING },
  { "building", GPUB_STATE_CREATING },
  { "stopped", GPUB_STATE_STOPPED },
  { "shelved_offloaded", GPUB_STATE_STOPPED },
  { "error", GPUB_STATE_ERROR },
};

bool
vm_id (const json_t *vm, char id[static ID_SIZE])
{
  int64_t n = json_i64 (vm, "id", 0);

  if (n <= 0)
    return false;
  snprintf (id, ID_SIZE, "%lld", (long long) n);
  return true;
}

const char *
vm_region (const json_t *vm)
{
  const char *region = json_str (json_object_get (vm, "environment"), "region", "");

  return *region && strlen (region) < FIELD_MAX ? region : NULL;
}

uint32_t
vm_state (const json_t *vm)
{
  const char *status = json_str (vm, "status", ""), *detail = json_str (vm, "vm_state", "");

  if (strcmp (status, "ACTIVE") == 0)
    return plug_word (details, N_ELEMENTS (details), detail, GPUB_STATE_UNKNOWN);
  return plug_word (states, N_ELEMENTS (states), status, GPUB_STATE_UNKNOWN);
}

const char *
vm_address (const json_t *vm)
{
  const char *address = json_str (vm, "floating_ip", "");
  const char *status = json_str (vm, "floating_ip_status", "ATTACHED");

  return *address && strcmp (status, "ATTACHED") == 0 ? address : NULL;
}

const json_t *
vm_labels (const json_t *vm)
{
  return json_object_get (vm, "labels");
}

static void
fill_price (struct gpub_machine *m, const json_t *vm, const struct catalog *k, bool address)
{
  const json_t *row = json_object_get (vm, "flavor");
  const struct flavor f = {
    .gpu = json_str (row, "gpu", ""),
    .row = row,
    .gpus = (uint32_t) json_i64 (row, "gpu_count", 0),
  };
  uint64_t ip = 0;

  if (!k || !flavor_price (k, &f, &m->price_udollar))
    return;
  if (address && price_of (k, "PublicIP", 1, &ip))
    m->price_udollar += ip;
  m->known |= GPUB_MACHINE_PRICE;
}

/* Times come with and without their zone; all are UTC. */
static void
fill_created (struct gpub_machine *m, const json_t *vm)
{
  const char *text = json_str (vm, "created_at", "");
  char zoned[64];

  snprintf (zoned, sizeof zoned, "%.40sZ", text);
  if (rfc3339_parse (text, &m->created_ms) || rfc3339_parse (zoned, &m->created_ms))
    m->known |= GPUB_MACHINE_CREATED;
}

int32_t
vm_emit (const struct ctx *c, const json_t *vm, const struct catalog *k)
{
  json_auto_t *text = json_array ();
  struct gpub_kv tags[TAGS_MAX];
  char id[ID_SIZE] = "";
  struct gpub_machine m = {
    .size = sizeof m,
    .known = GPUB_MACHINE_SSH_PORT,
    .id = id,
    .scope = vm_region (vm),
    .name = json_str (vm, "name", NULL),
    .state = vm_state (vm),
    .raw_state = json_str (vm, "status", ""),
    .address = vm_address (vm),
    .private_address = json_str (vm, "fixed_ip", NULL),
    .ssh_user = "ubuntu",
    .ssh_port = 22,
    .tags = tags,
    .ntags = tags_split (vm_labels (vm), text, tags),
    .region = vm_region (vm),
    .cloud = "hyperstack",
    .instance_type = json_str (json_object_get (vm, "flavor"), "name", NULL),
  };

  vm_id (vm, id);
  fill_price (&m, vm, k, *json_str (vm, "floating_ip", "") != '\0');
  fill_created (&m, vm);
  if (m.state == GPUB_STATE_ERROR)
    m.fail_text = "the cloud could not build it, or lost it";
  return c->s->host->emit_machine (c->call, &m);
}
