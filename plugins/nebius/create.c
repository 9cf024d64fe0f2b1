/* create.c - rent one preset
 *
 * The idempotency key follows from the token, and the name of a machine is unique in its project:
 * the same create, sent again, finds the machine that the first one made.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#include "plugins/nebius/nebius.h"

enum { PAGE = 100, READY = 2, NETWORK_SSD = 1, READ_WRITE = 2, RECOVERY_FAIL = 1 };
enum { ON_PREEMPTION_STOP = 1 };

static const struct method create_instance = { "compute",
                                               "nebius.compute.v1.InstanceService/Create",
                                               "create instance", &nb__operation__descriptor };
static const struct method get_by_name = { "compute", "nebius.compute.v1.InstanceService/GetByName",
                                           "look for instance", &nb__instance__descriptor };
static const struct method list_subnets = { "vpc", "nebius.vpc.v1.SubnetService/List",
                                            "list subnets", &nb__subnets__descriptor };

struct order {
  struct seat seat;
  char region[FIELD_MAX], subnet[FIELD_MAX], image[FIELD_MAX], key[40];
  bool subnet_is_default;
  uint32_t disk_gib;
  uint64_t price; /* all in */
  char *user_data;
};

/* ---- What is refused before ---- */

/* The cloud names no limits; these are the ones its users found. */
static bool
label_valid (const struct gpub_kv *tag)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
  size_t key = strlen (tag->key), value = strlen (tag->value);

  return key >= 1 && key <= 63 && tag->key[0] >= 'a' && tag->key[0] <= 'z' && value <= 63 &&
         strspn (tag->key, plain) == key && strspn (tag->value, plain) == value;
}

static int32_t
check_tags (const struct ctx *c, const struct gpub_create *a)
{
  if (a->ntags > LABELS_MAX)
    return plug_error (c->err, GPUB_E_INVALID, "%llu tags, at most %d are taken",
                       (unsigned long long) a->ntags, LABELS_MAX);
  for (uint64_t i = 0; i < a->ntags; i++)
    if (!label_valid (&a->tags[i]))
      return plug_error (c->err, GPUB_E_INVALID, "the tag %.60s=%.60s is no label of Nebius",
                         a->tags[i].key, a->tags[i].value);
  return GPUB_OK;
}

/* A UUID, as the cloud's own clients send. */
static void
make_key (const struct nebius *s, const char *token, char key[static 40])
{
  unsigned char md[SHA256_DIGEST_LENGTH];
  AUTO_FREE char *text = NULL;

  if (asprintf (&text, "%s/%s", s->owner, token) < 0)
    abort ();
  SHA256 ((const unsigned char *) text, strlen (text), md);
  snprintf (key, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", md[0],
            md[1], md[2], md[3], md[4], md[5], md[6], md[7], md[8], md[9], md[10], md[11], md[12],
            md[13], md[14], md[15]);
}

static int32_t
check (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  const char *why = NULL;

  if (!a->offer_ref || !seat_parse (a->offer_ref, &o->seat))
    return plug_error (c->err, GPUB_E_INVALID, "'%.150s' is no offer of Nebius",
                       a->offer_ref ? a->offer_ref : "");
  if (a->nssh_public_keys == 0)
    return plug_error (c->err, GPUB_E_INVALID, "no SSH public key: nobody could log in");
  if (a->nports > 0)
    return plug_error (c->err, GPUB_E_UNSUPPORTED,
                       "all ports of a Nebius machine are open: its security groups say more");
  if (!a->token || !*a->token || !a->name || !*a->name)
    return plug_error (c->err, GPUB_E_INVALID, "a create needs a token and a name");
  o->disk_gib = a->disk_gib > DISK_MIN_GIB ? a->disk_gib : DISK_MIN_GIB;
  if (o->disk_gib > DISK_MAX_GIB)
    return plug_error (c->err, GPUB_E_INVALID, "a disk of %u GiB, at most %d are taken",
                       o->disk_gib, DISK_MAX_GIB);
  if (!(o->user_data = user_data_make (a, &why)))
    return plug_error (c->err, GPUB_E_INVALID, "user data: %s", why);
  make_key (c->s, a->token, o->key);
  return check_tags (c, a);
}

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
static int32_t
look (const struct ctx *c, const struct gpub_create *a, const struct order *o, bool *there)
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

/* ---- The quote ---- */

static int32_t
read_region (const struct ctx *c, struct order *o)
{
  struct projects ps;
  int32_t rc = projects_read (c, o->seat.project, &ps);

  if (rc == GPUB_OK)
    rc = projects_verdict (c, &ps);
  if (rc == GPUB_OK && !*ps.at[0].region)
    rc = plug_error (c->err, GPUB_E_UNAVAILABLE, "project %.60s names no region", ps.at[0].id);
  if (rc == GPUB_OK)
    strcpy (o->region, ps.at[0].region);
  projects_done (&ps);
  return rc == GPUB_E_NOT_FOUND ? GPUB_E_INVALID : rc;
}

static int32_t
quote (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  uint64_t machine = 0, gib = 0;
  char what[2 * FIELD_MAX];
  int32_t rc = price_machine (c, o->region, &o->seat, PRICE_NOW, &machine);

  if (rc == GPUB_OK)
    rc = price_disk_gib (c, o->region, o->seat.project, PRICE_NOW, &gib);
  if (rc != GPUB_OK)
    return rc == GPUB_E_NOT_FOUND ? GPUB_E_CAPACITY : rc;
  o->price = machine + gib * o->disk_gib;
  snprintf (what, sizeof what, "%.90s in %.90s", o->seat.platform, o->region);
  return plug_check_price (what, o->price, a->max_price_udollar, c->err);
}

static int32_t
pick_image (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  struct images images = { NULL };
  const json_t *image = NULL;
  int32_t rc = images_read (c, o->region, &images);

  if (rc == GPUB_OK) {
    image = image_choose (c->s, &images, o->seat.platform, o->seat.preset, a->image);
    if (!image || !field_take (o->image, sizeof o->image, json_str (image, "family", "")))
      rc = plug_error (c->err, a->image ? GPUB_E_INVALID : GPUB_E_CAPACITY,
                       "no image%s%.60s fits %.60s in %.40s", a->image ? " " : "",
                       a->image ? a->image : "", o->seat.platform, o->region);
    else if (json_i64 (image, "min_gib", 0) > o->disk_gib)
      rc = plug_error (c->err, GPUB_E_INVALID, "image %.60s needs a disk of %lld GiB", o->image,
                       (long long) json_i64 (image, "min_gib", 0));
  }
  images_done (&images);
  return rc;
}

/* The default one, else the first that is ready. */
static int32_t
take_subnets (void *ctx, const void *page)
{
  const Nb__Subnets *rows = page;
  struct order *o = ctx;

  for (size_t i = 0; i < rows->n_items; i++) {
    const Nb__Subnet *row = rows->items[i];
    bool usual = row->metadata && strncmp (row->metadata->name, "default-subnet", 14) == 0;

    if (!row->metadata || (row->status && row->status->state != READY && row->status->state < 4) ||
        (*o->subnet && (o->subnet_is_default || !usual)) ||
        !field_take (o->subnet, sizeof o->subnet, row->metadata->id))
      continue;
    o->subnet_is_default = usual;
  }
  return GPUB_OK;
}

static int32_t
pick_subnet (const struct ctx *c, struct order *o)
{
  Nb__ListRequest in = NB__LIST_REQUEST__INIT;
  int32_t rc;

  in.parent_id = o->seat.project;
  in.page_size = PAGE;
  rc = api_pages (c, &list_subnets, &in, &in.page_token, take_subnets, o);
  if (rc == GPUB_OK && !*o->subnet)
    return plug_error (c->err, GPUB_E_INVALID, "project %.60s has no subnet that is ready",
                       o->seat.project);
  return rc;
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
  int32_t rc = look (c, a, o, &there);

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
static int32_t
order (const struct ctx *c, const struct gpub_create *a, struct order *o)
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

static int32_t
prepare (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  int32_t rc = quote (c, a, o);

  if (rc == GPUB_OK)
    rc = pick_image (c, a, o);
  return rc == GPUB_OK ? pick_subnet (c, o) : rc;
}

int32_t
nebius_create (void *self, struct gpub_call *call, const struct gpub_create *a,
               struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  struct order o = { .price = 0 };
  bool there = false;
  int32_t rc = check (&c, a, &o);

  if (rc == GPUB_OK)
    rc = read_region (&c, &o);
  if (rc == GPUB_OK && (rc = look (&c, a, &o, &there)) == GPUB_E_NOT_FOUND)
    rc = prepare (&c, a, &o);
  if (rc == GPUB_OK && !there)
    rc = order (&c, a, &o);
  free (o.user_data);
  return rc;
}
