/* order.c - the create itself, and the machine of one that was sent before
 *
 * The idempotency key follows from the token, and the name of a machine is unique in its project:
 * the same create, sent again, finds the machine that the first one made.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

enum { NETWORK_SSD = 1, READ_WRITE = 2, RECOVERY_FAIL = 1, ON_PREEMPTION_STOP = 1 };

static const struct method create_instance = { "compute",
                                               "nebius.compute.v1.InstanceService/Create",
                                               "create instance", &nb__operation__descriptor };
static const struct method get_by_name = { "compute", "nebius.compute.v1.InstanceService/GetByName",
                                           "look for instance", &nb__instance__descriptor };

/* ---- Is it there already? ---- */

static bool
same_wish (const struct order *o, const Nb__InstanceSpec *spec)
{
  return spec && spec->resources && strcmp (spec->resources->platform, o->seat.platform) == 0 &&
         strcmp (spec->resources->preset, o->seat.preset) == 0 &&
         (spec->preemptible != NULL) == o->seat.spot;
}

static int32_t
emit_there (const struct ctx *c, const struct order *o, const Nb__Instance *vm)
{
  json_auto_t *data = json_pack ("{s:s}", "region", o->region);
  AUTO_FREE char *text = json_dumps (data, JSON_COMPACT);
  const struct found f = { .project = o->seat.project, .region = o->region, .plugin_data = text };

  return instance_emit (c, vm, &f);
}

/* GPUB_E_NOT_FOUND: nothing has this name.  Else *there when it is this attempt's machine. */
int32_t
order_look (const struct ctx *c, const struct gpub_create *a, const struct order *o, bool *there)
{
  AUTO_MSG Nb__Instance *vm = NULL;
  Nb__ByName in = NB__BY_NAME__INIT;
  const char *token;
  int32_t rc;

  *there = false;
  in.parent_id = (char *) (uintptr_t) o->seat.project;
  in.name = (char *) (uintptr_t) a->name;
  if ((rc = api_read (c, &get_by_name, &in, &vm)) != GPUB_OK)
    return rc;
  token = label_of (vm->metadata, GPUB_TAG_TOKEN);
  if (!vm->metadata || !*vm->metadata->id || strcmp (vm->metadata->name, a->name) != 0)
    return plug_error (c->err, GPUB_E_UNAVAILABLE,
                       "look for instance: the answer is about another");
  if (!token || strcmp (token, a->token) != 0 || !same_wish (o, vm->spec))
    return plug_error (c->err, GPUB_E_CONFLICT, "%.60s is the name of another machine", a->name);
  *there = true;
  return emit_there (c, o, vm);
}

/* ---- The order ---- */

static int32_t
emit_created (const struct ctx *c, const struct gpub_create *a, const struct order *o,
              const Nb__Operation *op)
{
  json_auto_t *data = json_pack ("{s:s, s:s}", "operation", op->id, "region", o->region);
  AUTO_FREE char *text = data ? json_dumps (data, JSON_COMPACT) : NULL;
  char type[2 * FIELD_MAX];
  const struct gpub_machine m = {
    .size = sizeof m,
    .known = GPUB_MACHINE_PRICE,
    .id = op->resource_id,
    .scope = o->seat.project,
    .name = a->name,
    .state = GPUB_STATE_CREATING,
    .raw_state = "CREATING",
    .ssh_user = "ubuntu",
    .price_udollar = o->price,
    .tags = a->tags,
    .ntags = a->ntags,
    .plugin_data = text,
    .region = o->region,
    .cloud = "nebius",
    .instance_type = type,
  };

  snprintf (type, sizeof type, "%s.%s", o->seat.platform, o->seat.preset);
  return c->s->host->emit_machine (c->call, &m);
}

static int32_t
take_operation (const struct ctx *c, const struct gpub_create *a, const struct order *o,
                const Nb__Operation *op)
{
  struct refusal why;
  bool over = operation_over (op, &why);
  int32_t rc;

  if (*op->resource_id && (rc = emit_created (c, a, o, op)) != GPUB_OK)
    return rc;
  if (over && why.kind != GPUB_OK) {
    snprintf (c->err->provider_code, sizeof c->err->provider_code, "%s", why.code);
    return plug_error (c->err, why.kind, "create instance: %s: %.150s", why.code, why.text);
  }
  return *op->resource_id
             ? GPUB_OK
             : plug_error (c->err, GPUB_E_UNKNOWN,
                           "create instance: accepted, but the operation names no instance");
}

/* A name that is taken may have been taken by this very create, sent before. */
static int32_t
taken (const struct ctx *c, const struct gpub_create *a, const struct order *o)
{
  bool there;
  int32_t rc = order_look (c, a, o, &there);

  return rc == GPUB_E_NOT_FOUND ? plug_error (c->err, GPUB_E_UNKNOWN,
                                              "create instance: the name is taken, yet not to be "
                                              "found")
                                : rc;
}

static int32_t
send (const struct ctx *c, const struct gpub_create *a, const struct order *o,
      const Nb__CreateInstance *in)
{
  AUTO_MSG Nb__Operation *op = NULL;
  int32_t rc = api_change (c, &create_instance, o->key, in, &op);

  if (rc == GPUB_E_CONFLICT)
    return taken (c, a, o);
  if (rc == GPUB_E_NOT_FOUND) /* what it names: an image, a subnet */
    return GPUB_E_INVALID;
  return rc == GPUB_OK ? take_operation (c, a, o, op) : rc;
}

/* The labels are two lists of one content: of the machine and of its disk. */
struct labels {
  Nb__Metadata__LabelsEntry vm[LABELS_MAX], *vm_list[LABELS_MAX];
  Nb__ManagedDisk__LabelsEntry disk[LABELS_MAX], *disk_list[LABELS_MAX];
};

static void
fill_labels (struct labels *l, const struct gpub_create *a)
{
  for (uint64_t i = 0; i < a->ntags; i++) {
    nb__metadata__labels_entry__init (&l->vm[i]);
    nb__managed_disk__labels_entry__init (&l->disk[i]);
    l->vm[i].key = l->disk[i].key = (char *) (uintptr_t) a->tags[i].key;
    l->vm[i].value = l->disk[i].value = (char *) (uintptr_t) a->tags[i].value;
    l->vm_list[i] = &l->vm[i];
    l->disk_list[i] = &l->disk[i];
  }
}

/* An empty message is a wish here: an address of any kind, a public one of any kind. */
int32_t
order_send (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  struct labels l;
  char disk_name[FIELD_MAX];
  Nb__CreateInstance in = NB__CREATE_INSTANCE__INIT;
  Nb__Metadata metadata = NB__METADATA__INIT;
  Nb__InstanceSpec spec = NB__INSTANCE_SPEC__INIT;
  Nb__Resources resources = NB__RESOURCES__INIT;
  Nb__NicSpec nic = NB__NIC_SPEC__INIT, *nics[] = { &nic };
  Nb__AddressSpec any = NB__ADDRESS_SPEC__INIT;
  Nb__AttachedDisk boot = NB__ATTACHED_DISK__INIT;
  Nb__ManagedDisk managed = NB__MANAGED_DISK__INIT;
  Nb__DiskSpec disk = NB__DISK_SPEC__INIT;
  Nb__ImageFamily image = NB__IMAGE_FAMILY__INIT;
  Nb__Preemptible preemptible = NB__PREEMPTIBLE__INIT;

  fill_labels (&l, a);
  snprintf (disk_name, sizeof disk_name, "%.80s-boot", a->name);
  metadata.parent_id = o->seat.project;
  metadata.name = (char *) (uintptr_t) a->name;
  metadata.n_labels = managed.n_labels = a->ntags;
  metadata.labels = l.vm_list;
  resources.platform = o->seat.platform;
  resources.preset = o->seat.preset;
  nic.subnet_id = o->subnet;
  nic.name = (char *) (uintptr_t) "eth0";
  nic.ip_address = nic.public_ip_address = &any;
  image.image_family = o->image;
  disk.type = NETWORK_SSD;
  disk.size_gibibytes = o->disk_gib;
  disk.source_image_family = &image;
  managed.name = disk_name;
  managed.labels = l.disk_list;
  managed.spec = &disk;
  boot.attach_mode = READ_WRITE;
  boot.managed_disk = &managed;
  preemptible.on_preemption = ON_PREEMPTION_STOP;
  spec.resources = &resources;
  spec.n_network_interfaces = N_ELEMENTS (nics);
  spec.network_interfaces = nics;
  spec.boot_disk = &boot;
  spec.cloud_init_user_data = o->user_data;
  spec.recovery_policy = RECOVERY_FAIL; /* else a shutdown from inside only starts it again */
  spec.preemptible = o->seat.spot ? &preemptible : NULL;
  spec.hostname = (char *) (uintptr_t) a->name;
  in.metadata = &metadata;
  in.spec = &spec;
  return send (c, a, o, &in);
}
