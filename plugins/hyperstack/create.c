/* create.c - rent one flavor
 *
 * There is no idempotency key: a create is sent once, and what a lost answer did is for find to
 * learn.  A name that is taken says the same: perhaps by this attempt.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"
#include "plugins/tags.h"

enum { SSH_PORT = 22 };

struct order {
  char region[FIELD_MAX], flavor[FIELD_MAX], environment[FIELD_MAX], key[FIELD_MAX];
  char image[256];
  uint64_t price; /* all in */
};

/* ---- What goes over the wire ---- */

static json_t *
rule (const char *proto, uint32_t from, uint32_t to, const char *cidr)
{
  return json_pack ("{s:s, s:s, s:s, s:s, s:i, s:i}", "direction", "ingress", "ethertype",
                    strchr (cidr, ':') ? "IPv6" : "IPv4", "protocol", proto, "remote_ip_prefix",
                    cidr, "port_range_min", (int) from, "port_range_max", (int) to);
}

/* No inbound port is open but those of a rule. */
static json_t *
rules (const struct hyperstack *s, const struct gpub_create *a)
{
  json_t *list = json_array ();

  json_array_append_new (list, rule ("tcp", SSH_PORT, SSH_PORT, s->ssh_from));
  for (uint64_t i = 0; i < a->nports; i++) {
    const struct gpub_port *p = GPUB_AT (struct gpub_port, a->ports, a->ports_stride, i);

    json_array_append_new (list, rule (p->proto, p->from, p->to, p->cidr ? p->cidr : "0.0.0.0/0"));
  }
  return list;
}

/* Port randomization is on unless it is refused, and what it does to the caller's ports is not
 * documented. */
static json_t *
body_of (const struct hyperstack *s, const struct gpub_create *a, const struct order *o)
{
  json_t *body = json_pack ("{s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:b, s:o, s:o}", "name", a->name,
                            "environment_name", o->environment, "flavor_name", o->flavor,
                            "image_name", o->image, "key_name", o->key, "count", 1,
                            "assign_floating_ip", 1, "enable_port_randomization", 0, "labels",
                            tags_list (a), "security_rules", rules (s, a));

  if (a->user_data_kind != GPUB_DATA_NONE && a->user_data_len > 0)
    json_object_set_new (body, "user_data", json_stringn (a->user_data, a->user_data_len));
  return body;
}

/* ---- What is refused before ---- */

static int32_t
check_ports (const struct ctx *c, const struct gpub_create *a)
{
  for (uint64_t i = 0; i < a->nports; i++) {
    const struct gpub_port *p = GPUB_AT (struct gpub_port, a->ports, a->ports_stride, i);

    if (!p->proto || (strcmp (p->proto, "tcp") != 0 && strcmp (p->proto, "udp") != 0) ||
        p->from == 0 || p->from > p->to || p->to > 65535)
      return plug_error (c->err, GPUB_E_INVALID, "'%.10s' %u-%u is no range of ports",
                         p->proto ? p->proto : "", p->from, p->to);
  }
  return GPUB_OK;
}

static int32_t
check_user_data (const struct ctx *c, const struct gpub_create *a)
{
  json_auto_t *text = NULL;
  int32_t rc = plug_check_user_data (a, USER_DATA_MAX, c->err);

  if (rc != GPUB_OK)
    return rc;
  if (a->user_data_len == 0 || memchr (a->user_data, '\0', a->user_data_len) == NULL)
    text = json_stringn (a->user_data_len ? a->user_data : "", a->user_data_len);
  return text ? GPUB_OK
              : plug_error (c->err, GPUB_E_INVALID,
                            "user data is no UTF-8 text, as Hyperstack "
                            "wants it");
}

static int32_t
check (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  int32_t rc;

  if (!a->offer_ref || !ref_parse (a->offer_ref, o->region, o->flavor))
    return plug_error (c->err, GPUB_E_INVALID, "'%.150s' is no offer of Hyperstack",
                       a->offer_ref ? a->offer_ref : "");
  if (a->nssh_public_keys == 0)
    return plug_error (c->err, GPUB_E_INVALID, "no SSH public key: nobody could log in");
  rc = check_ports (c, a);
  return rc == GPUB_OK ? check_user_data (c, a) : rc;
}

/* Those who may not read the balance may still rent: the create itself will tell. */
static int32_t
check_money (const struct ctx *c)
{
  json_auto_t *body = NULL;
  int32_t rc = api_get (c, "read balance", "/billing/user-credit/credit", &body);
  const json_t *data = json_object_get (body, "data");

  if (rc == GPUB_OK && !json_bool (data, "can_create_instance", true))
    return plug_error (c->err, GPUB_E_QUOTA,
                       "the account may create no machine: its balance is %.2f $",
                       json_number_value (json_object_get (data, "credit")));
  return rc == GPUB_E_CANCELLED || rc == GPUB_E_RATE_LIMITED ? rc : GPUB_OK;
}

/* ---- The quote ---- */

static bool
find_flavor (const struct catalog *k, const struct order *o, struct flavor *f)
{
  const json_t *group, *row;
  size_t i, n;

  json_array_foreach (k->flavors, i, group)
    json_array_foreach (json_object_get (group, "flavors"), n, row)
      if (flavor_read (f, group, row) && strcmp (f->region, o->region) == 0 &&
          strcmp (f->name, o->flavor) == 0)
        return true;
  return false;
}

static int32_t
judge (const struct ctx *c, const struct gpub_create *a, const struct catalog *k,
       const struct flavor *f, struct order *o)
{
  char what[160];
  uint64_t ip = 0;
  int64_t stock;

  if (flavor_stock (k, f, &stock) == GPUB_AVAIL_NONE)
    return plug_error (c->err, GPUB_E_CAPACITY, "%.60s in %.60s is out of stock now", f->name,
                       f->region);
  if (!flavor_price (k, f, &o->price))
    return plug_error (c->err, GPUB_E_CAPACITY, "%.60s in %.60s has no price now", f->name,
                       f->region);
  if (price_of (k, "PublicIP", 1, &ip))
    o->price += ip;
  snprintf (what, sizeof what, "%.60s in %.60s", f->name, f->region);
  return plug_check_price (what, o->price, a->max_price_udollar, c->err);
}

static int32_t
pick_image (const struct ctx *c, const struct gpub_create *a, const struct flavor *f,
            struct order *o)
{
  json_auto_t *groups = NULL;
  const char *image;
  int32_t rc = images_read (c, f->region, &groups);

  if (rc != GPUB_OK)
    return rc;
  if (a->image && !image_offered (groups, f, a->image))
    return plug_error (c->err, GPUB_E_INVALID, "image '%.100s' is not offered with %.60s in %.60s",
                       a->image, f->name, f->region);
  image = a->image ? a->image : image_choose (c->s, groups, f);
  if (!image || strlen (image) >= sizeof o->image)
    return plug_error (c->err, GPUB_E_CAPACITY, "no image fits %.60s in %.60s", f->name, f->region);
  strcpy (o->image, image);
  return GPUB_OK;
}

static int32_t
quote (const struct ctx *c, const struct gpub_create *a, struct order *o)
{
  struct catalog k;
  struct flavor f;
  int32_t rc = catalog_read (c, o->region, &k);

  if (rc == GPUB_OK && !find_flavor (&k, o, &f))
    rc = plug_error (c->err, GPUB_E_CAPACITY, "%.60s is no longer sold in %.60s", o->flavor,
                     o->region);
  else if (rc == GPUB_OK)
    rc = judge (c, a, &k, &f, o);
  if (rc == GPUB_OK)
    rc = pick_image (c, a, &f, o);
  catalog_done (&k);
  return rc;
}

/* ---- The order ---- */

static int32_t
emit_created (const struct ctx *c, const struct gpub_create *a, const struct order *o,
              const char *id)
{
  const struct gpub_machine m = {
    .size = sizeof m,
    .known = GPUB_MACHINE_PRICE,
    .id = id,
    .scope = o->region,
    .name = a->name,
    .state = GPUB_STATE_CREATING,
    .raw_state = "CREATING",
    .ssh_user = "ubuntu",
    .price_udollar = o->price,
    .tags = a->tags,
    .ntags = a->ntags,
    .region = o->region,
    .cloud = "hyperstack",
    .instance_type = o->flavor,
  };

  return c->s->host->emit_machine (c->call, &m);
}

/* One was asked for; should there be more, every one is the broker's to know. */
static int32_t
take_answer (const struct ctx *c, const struct gpub_create *a, const struct order *o,
             const json_t *answer)
{
  const json_t *vm;
  char id[ID_SIZE];
  size_t i, taken = 0;
  int32_t rc;

  json_array_foreach (json_object_get (answer, "instances"), i, vm) {
    if (!vm_id (vm, id))
      continue;
    taken++;
    if ((rc = emit_created (c, a, o, id)) != GPUB_OK)
      return rc;
  }
  return taken ? GPUB_OK
               : plug_error (c->err, GPUB_E_UNKNOWN,
                             "create VM: accepted, but the answer has no usable id");
}

static int32_t
order (const struct ctx *c, const struct gpub_create *a, const struct order *o)
{
  json_auto_t *body = body_of (c->s, a, o), *answer = NULL;
  int32_t rc = api_change (c, "create VM", "POST", "/core/virtual-machines", body, &answer);

  if (rc == GPUB_E_NOT_FOUND) /* what it names: an environment, a key, an image */
    return GPUB_E_INVALID;
  return rc == GPUB_OK ? take_answer (c, a, o, answer) : rc;
}

int32_t
hyperstack_create (void *self, struct gpub_call *call, const struct gpub_create *a,
                   struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  struct order o = { .price = 0 };
  int32_t rc = check (&c, a, &o);

  if (rc == GPUB_OK)
    rc = quote (&c, a, &o);
  if (rc == GPUB_OK)
    rc = check_money (&c);
  if (rc == GPUB_OK)
    rc = environment_ensure (&c, o.region, o.environment);
  if (rc == GPUB_OK)
    rc = key_ensure (&c, o.environment, a->ssh_public_keys[0], o.key);
  return rc == GPUB_OK ? order (&c, a, &o) : rc;
}
