/* instance.c - a Nebius instance as a machine
 *
 * STOPPED is three things: not started yet, not started for want of capacity, and stopped after it
 * ran.  The create operation tells the first from the others; where it is not known, the age does.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

enum { DISKS_MAX = 16, YOUNG_MS = 180 * 1000 };

enum { STOPPED = 6 };
static const struct {
  const char *name;
  uint32_t state;
} states[] = {
  { "UNSPECIFIED", GPUB_STATE_UNKNOWN },
  { "CREATING", GPUB_STATE_CREATING },
  { "UPDATING", GPUB_STATE_UNKNOWN },
  { "STARTING", GPUB_STATE_CREATING },
  { "RUNNING", GPUB_STATE_RUNNING },
  { "STOPPING", GPUB_STATE_STOPPING },
  [STOPPED] = { "STOPPED", GPUB_STATE_STOPPED },
  { "DELETING", GPUB_STATE_DELETING },
  { "ERROR", GPUB_STATE_ERROR },
};

const char *
label_of (const Nb__Metadata *m, const char *key)
{
  for (size_t i = 0; m && i < m->n_labels; i++)
    if (strcmp (m->labels[i]->key, key) == 0)
      return m->labels[i]->value;
  return NULL;
}

bool
is_ours (const Nb__Metadata *m)
{
  return label_of (m, GPUB_TAG_OWNER) || label_of (m, GPUB_TAG_LEASE) ||
         label_of (m, GPUB_TAG_TOKEN);
}

uint64_t
labels_take (const Nb__Metadata *m, struct gpub_kv tags[static LABELS_MAX])
{
  uint64_t n = 0;

  for (size_t i = 0; i < m->n_labels && n < LABELS_MAX; i++)
    if (*m->labels[i]->key)
      tags[n++] = (struct gpub_kv){ m->labels[i]->key, m->labels[i]->value };
  return n;
}

int64_t
created_ms_of (const Nb__Metadata *m)
{
  const Nb__Timestamp *t = m ? m->created_at : NULL;

  return t && t->seconds > 0 && t->seconds < INT32_MAX * 4ll
             ? t->seconds * 1000 + t->nanos / 1000000
             : 0;
}

uint32_t
instance_state (const Nb__Instance *vm, enum operation create, int64_t now_ms)
{
  uint32_t code = vm->status ? (uint32_t) vm->status->state : 0;
  uint32_t state = code < N_ELEMENTS (states) ? states[code].state : GPUB_STATE_UNKNOWN;

  if (create == OPERATION_FAILED && state != GPUB_STATE_RUNNING && state != GPUB_STATE_DELETING)
    return GPUB_STATE_ERROR;
  if (state != GPUB_STATE_STOPPED)
    return state;
  if (vm->status->reconciling || create == OPERATION_RUNS)
    return GPUB_STATE_CREATING;
  if (create == OPERATION_DONE)
    return GPUB_STATE_ERROR;
  return now_ms - created_ms_of (vm->metadata) < YOUNG_MS ? GPUB_STATE_CREATING
                                                          : GPUB_STATE_STOPPED;
}

static void
print_raw (const Nb__Instance *vm, char raw[static 32])
{
  uint32_t code = vm->status ? (uint32_t) vm->status->state : 0;

  if (code < N_ELEMENTS (states))
    snprintf (raw, 32, "%s%s", states[code].name,
              vm->status && vm->status->reconciling ? ", reconciling" : "");
  else
    snprintf (raw, 32, "state %u", code);
}

/* "203.0.113.7/32" without its mask; NULL for what is no address. */
static const char *
address_of (const Nb__Address *a, char out[static INET6_ADDRSTRLEN])
{
  unsigned char bytes[16];
  size_t n = a ? strcspn (a->address, "/") : 0;

  if (n == 0 || n >= INET6_ADDRSTRLEN)
    return NULL;
  memcpy (out, a->address, n);
  out[n] = '\0';
  return inet_pton (AF_INET, out, bytes) == 1 || inet_pton (AF_INET6, out, bytes) == 1 ? out : NULL;
}

static void
fill_price (const struct ctx *c, struct gpub_machine *m, const Nb__Instance *vm,
            const struct found *f)
{
  const Nb__AttachedDisk *boot = vm->spec ? vm->spec->boot_disk : NULL;
  const Nb__DiskSpec *disk = boot && boot->managed_disk ? boot->managed_disk->spec : NULL;
  struct seat seat = { .spot = vm->spec && vm->spec->preemptible };
  uint64_t price, gib;

  if (!f->region || !vm->spec || !vm->spec->resources || !disk || disk->size_gibibytes <= 0 ||
      disk->size_gibibytes > DISK_MAX_GIB ||
      !field_take (seat.platform, sizeof seat.platform, vm->spec->resources->platform) ||
      !field_take (seat.preset, sizeof seat.preset, vm->spec->resources->preset) ||
      price_machine (c, f->region, &seat, PRICE_KNOWN, &price) != GPUB_OK ||
      price_disk_gib (c, f->region, f->project, PRICE_KNOWN, &gib) != GPUB_OK)
    return;
  m->price_udollar = price + gib * (uint64_t) disk->size_gibibytes;
  m->known |= GPUB_MACHINE_PRICE;
}

/* Managed disks go with the machine; they are known so that one that stays is found. */
static uint64_t
fill_disks (struct gpub_resource disks[static DISKS_MAX], const Nb__Instance *vm,
            const char *project)
{
  uint64_t n = 0;

  for (size_t i = 0; vm->status && i < vm->status->n_disk_attachments && n < DISKS_MAX; i++) {
    const Nb__DiskAttachment *d = vm->status->disk_attachments[i];

    if (d->is_managed && disk_is_id (d->id))
      disks[n++] = (struct gpub_resource){
        .size = sizeof disks[0], .kind = "disk", .id = d->id, .scope = project, .billable = 1
      };
  }
  return n;
}

static void
fill_failure (struct gpub_machine *m, const struct found *f)
{
  if (m->state != GPUB_STATE_ERROR)
    return;
  m->fail_text = "the cloud says error";
  if (f->create == OPERATION_FAILED) {
    m->fail_kind = (uint32_t) (f->why.kind == GPUB_E_UNKNOWN ? GPUB_E_UNAVAILABLE : f->why.kind);
    m->fail_text = *f->why.text ? f->why.text : f->why.code;
  } else if (strncmp (m->raw_state, "STOPPED", 7) == 0) {
    m->fail_kind = GPUB_E_CAPACITY;
    m->fail_text = "stopped: no capacity, preempted, or shut down from inside";
  }
}

int32_t
instance_emit (const struct ctx *c, const Nb__Instance *vm, const struct found *f)
{
  struct gpub_kv tags[LABELS_MAX];
  struct gpub_resource disks[DISKS_MAX];
  char raw[32], public[INET6_ADDRSTRLEN], private[INET6_ADDRSTRLEN], type[2 * FIELD_MAX] = "";
  const Nb__NicStatus *nic =
      vm->status && vm->status->n_network_interfaces ? vm->status->network_interfaces[0] : NULL;
  struct gpub_machine m = {
    .size = sizeof m,
    .known = GPUB_MACHINE_SSH_PORT,
    .id = vm->metadata->id,
    .scope = f->project,
    .name = vm->metadata->name,
    .state = instance_state (vm, f->create, c->s->host->now_ms (c->call)),
    .raw_state = raw,
    .address = nic ? address_of (nic->public_ip_address, public) : NULL,
    .private_address = nic ? address_of (nic->ip_address, private) : NULL,
    .ssh_user = "ubuntu",
    .ssh_port = SSH_PORT,
    .created_ms = created_ms_of (vm->metadata),
    .tags = tags,
    .ntags = labels_take (vm->metadata, tags),
    .resources = disks,
    .nresources = fill_disks (disks, vm, f->project),
    .resources_stride = sizeof disks[0],
    .plugin_data = f->plugin_data,
    .region = f->region,
    .cloud = "nebius",
    .instance_type = type,
  };

  if (vm->spec && vm->spec->resources)
    snprintf (type, sizeof type, "%.90s.%.90s", vm->spec->resources->platform,
              vm->spec->resources->preset);
  print_raw (vm, raw);
  m.known |= m.created_ms ? GPUB_MACHINE_CREATED : 0;
  fill_price (c, &m, vm, f);
  fill_failure (&m, f);
  return c->s->host->emit_machine (c->call, &m);
}
