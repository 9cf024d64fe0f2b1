/* create.c - RunInstances, zone after zone
 *
 * Each zone has a client token of its own, a function of the attempt's.  A doubtful answer is
 * followed by the same bytes under the same token, which makes the machine or finds it; only a
 * definite "no stock" goes on to the next zone.  Which zone was last is on disk before it is asked,
 * so that a create that is sent again after a crash continues there.
 */
#include "config.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { TRIES = 4, PAUSE_MS = 250, LEAST_MS = 500 };

struct launch {
  const struct ctx *c;
  const struct gpub_create *a;
  const struct order *o;
  const char *user_data; /* base64 */
  bool doubt;            /* a request under this token may have made the machine */
  bool made;             /* and this one did */
};

static void
digest (const char *text, char *out, size_t size)
{
  unsigned char md[EVP_MAX_MD_SIZE];
  unsigned n = 0;

  if (!EVP_Digest (text, strlen (text), md, &n, EVP_sha256 (), NULL))
    abort ();
  for (unsigned i = 0; i < n && 2 * i + 3 <= size; i++)
    snprintf (out + 2 * i, 3, "%02x", md[i]);
}

void
zone_token (const char *token, const char *zone, char out[static FIELD_MAX + 1])
{
  char text[3 * FIELD_MAX];

  snprintf (text, sizeof text, "%.64s/%.64s", token, zone);
  digest (text, out, FIELD_MAX + 1);
}

/* Tokens may have letters that keys of the state may not. */
void
create_key (const char *token, char key[static FIELD_MAX + 16])
{
  char hash[FIELD_MAX + 1];

  digest (token, hash, sizeof hash);
  snprintf (key, FIELD_MAX + 16, "create-%.32s", hash);
}

/* ---- The request ---- */

static void
add_tags (struct query *q, const struct gpub_create *a, int spec, const char *resource)
{
  char end[24];
  int n = 0;

  snprintf (end, sizeof end, "%lld", (long long) (a->not_after_ms / 1000));
  query_addf (q, resource, "TagSpecification.%d.ResourceType", spec);
  query_addf (q, "Name", "TagSpecification.%d.Tag.%d.Key", spec, ++n);
  query_addf (q, a->name, "TagSpecification.%d.Tag.%d.Value", spec, n);
  for (uint64_t i = 0; i < a->ntags; i++) {
    query_addf (q, a->tags[i].key, "TagSpecification.%d.Tag.%d.Key", spec, ++n);
    query_addf (q, a->tags[i].value, "TagSpecification.%d.Tag.%d.Value", spec, n);
  }
  if (a->not_after_ms) {
    query_addf (q, TAG_NOT_AFTER, "TagSpecification.%d.Tag.%d.Key", spec, ++n);
    query_addf (q, end, "TagSpecification.%d.Tag.%d.Value", spec, n);
  }
}

static void
add_spot (struct query *q, const struct order *o)
{
  char dollars[32];

  snprintf (dollars, sizeof dollars, "%llu.%06llu", (unsigned long long) (o->spot_max / 1000000),
            (unsigned long long) (o->spot_max % 1000000));
  query_add (q, "InstanceMarketOptions.MarketType", "spot");
  query_add (q, "InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time");
  query_add (q, "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate");
  query_add (q, "InstanceMarketOptions.SpotOptions.MaxPrice", dollars);
}

static void
add_network (struct query *q, const struct order *o, const json_t *place)
{
  query_add (q, "NetworkInterface.1.DeviceIndex", "0");
  query_add (q, "NetworkInterface.1.SubnetId", json_str (place, "subnet", ""));
  query_add (q, "NetworkInterface.1.SecurityGroupId.1", o->group);
  query_add (q, "NetworkInterface.1.AssociatePublicIpAddress", "true");
  query_add (q, "NetworkInterface.1.DeleteOnTermination", "true");
}

static void
add_disk (struct query *q, const struct order *o)
{
  query_add (q, "BlockDeviceMapping.1.DeviceName", o->image.root);
  query_int (q, "BlockDeviceMapping.1.Ebs.VolumeSize", o->gib);
  query_add (q, "BlockDeviceMapping.1.Ebs.VolumeType", "gp3");
  query_add (q, "BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true");
}

/* For whoever lists it later: a spot price is nowhere else. */
static void
add_price (struct query *q, const struct launch *l, const json_t *place)
{
  unsigned n = (unsigned) l->a->ntags + 2 + (l->a->not_after_ms != 0);
  char price[24];

  snprintf (price, sizeof price, "%lld",
            (long long) json_i64 (place, "price", 0) + (long long) l->o->besides);
  query_addf (q, TAG_PRICE, "TagSpecification.1.Tag.%u.Key", n);
  query_addf (q, price, "TagSpecification.1.Tag.%u.Value", n);
}

static struct query
request (const struct launch *l, const json_t *place)
{
  struct query q = query_new ("RunInstances");
  char token[FIELD_MAX + 1];

  zone_token (l->a->token, json_str (place, "zone", ""), token);
  query_add (&q, "ImageId", l->o->image.id);
  query_add (&q, "InstanceType", l->o->type);
  query_add (&q, "MinCount", "1");
  query_add (&q, "MaxCount", "1");
  query_add (&q, "ClientToken", token);
  query_add (&q, "UserData", l->user_data);
  query_add (&q, "InstanceInitiatedShutdownBehavior", "terminate");
  query_add (&q, "MetadataOptions.HttpTokens", "required");
  query_add (&q, "MetadataOptions.HttpEndpoint", "enabled");
  query_add (&q, "MetadataOptions.HttpPutResponseHopLimit", "1"); /* not for pods */
  query_add (&q, "MetadataOptions.InstanceMetadataTags", "enabled");
  add_network (&q, l->o, place);
  add_disk (&q, l->o);
  add_tags (&q, l->a, 1, "instance");
  add_price (&q, l, place);
  add_tags (&q, l->a, 2, "volume");
  if (l->o->market == GPUB_MARKET_SPOT) {
    add_tags (&q, l->a, 3, "spot-instances-request");
    add_spot (&q, l->o);
  }
  return q;
}

/* ---- The answer ---- */

/* One was asked for; should there be more, every one is the broker's to know. */
static int32_t
take_answer (struct launch *l, const json_t *answer, uint64_t price)
{
  const json_t *row;
  char id[FIELD_MAX];
  size_t i, taken = 0;
  int32_t rc;

  json_array_foreach (json_object_get (answer, "instancesSet"), i, row) {
    if (!instance_id (row, id))
      continue;
    taken++;
    l->made = true;
    if ((rc = instance_emit (l->c, row, json_str (answer, "ownerId", ""), price, false)) != GPUB_OK)
      return rc;
  }
  return taken ? GPUB_OK
               : plug_error (l->c->err, GPUB_E_UNKNOWN,
                             "run instance: accepted, but the answer has no usable id");
}

static int32_t
run_once (struct launch *l, const json_t *place)
{
  AUTO_QUERY struct query q = request (l, place);
  json_auto_t *answer = NULL;
  uint32_t left = l->c->s->host->ms_left (l->c->call);
  int32_t rc =
      ec2_change (l->c, "run instance", &q, left / 2 > LEAST_MS ? left / 2 : left, &answer);

  if (rc == GPUB_OK)
    rc = take_answer (l, answer, (uint64_t) json_i64 (place, "price", 0) + l->o->besides);
  return rc;
}

/* With a token EC2 looks for the first request's machine before it looks for stock: then these say
 * that there is none. */
static bool
settles (int32_t rc)
{
  return rc == GPUB_OK || rc == GPUB_E_CAPACITY || rc == GPUB_E_QUOTA || rc == GPUB_E_CONFLICT;
}

static int32_t
run_at (struct launch *l, const json_t *place)
{
  const struct gpub_host *host = l->c->s->host;
  int32_t rc = GPUB_E_UNKNOWN;

  for (int try = 0; try < TRIES; try++) {
    rc = run_once (l, place);
    if (settles (rc))
      return rc;
    l->doubt |= rc == GPUB_E_UNKNOWN;
    if (!l->doubt || host->ms_left (l->c->call) < LEAST_MS ||
        host->sleep (l->c->call, (uint32_t) PAUSE_MS << try) != GPUB_OK)
      break;
  }
  return l->doubt ? GPUB_E_UNKNOWN : rc;
}

/* ---- All places ---- */

static int32_t
note (const struct launch *l, const char *key, size_t place)
{
  json_auto_t *saved = order_save (l->o, place);
  AUTO_FREE char *text = saved ? json_dumps (saved, JSON_COMPACT) : NULL;

  if (text && l->c->s->host->state_put (l->c->call, key, text, strlen (text)) == GPUB_OK)
    return GPUB_OK;
  return plug_error (l->c->err, GPUB_E_UNAVAILABLE,
                     "the state folder takes no note of this create: nothing was sent");
}

static int32_t
run (struct launch *l, const char *key, size_t place)
{
  size_t n = json_array_size (l->o->places);
  int32_t rc = GPUB_E_CAPACITY;

  for (; place < n; place++) {
    if (!l->doubt && (rc = note (l, key, place)) != GPUB_OK)
      return rc;
    rc = run_at (l, json_array_get (l->o->places, place));
    if (rc != GPUB_E_CAPACITY)
      break;
    l->doubt = false;
    if (l->c->s->host->ms_left (l->c->call) < LEAST_MS)
      break; /* the reason is the last zone's */
  }
  /* What made a machine is kept until that is removed: the same create again has to find it. */
  if (!l->made && rc != GPUB_E_UNKNOWN && rc != GPUB_E_CONFLICT)
    l->c->s->host->state_put (l->c->call, key, NULL, 0);
  return rc;
}

static json_t *
saved_order (const struct ctx *c, const char *key)
{
  const void *bytes;
  uint64_t n;

  if (c->s->host->state_get (c->call, key, &bytes, &n) != GPUB_OK)
    return NULL;
  return json_loadb (bytes, n, 0, NULL);
}

static bool
same_offer (const struct order *o, const json_t *saved)
{
  return strcmp (json_str (saved, "region", ""), o->region) == 0 &&
         strcmp (json_str (saved, "type", ""), o->type) == 0 &&
         json_i64 (saved, "market", -1) == o->market;
}

static int32_t
order_get (const struct ctx *c, struct launch *l, const char *key, struct order *o, size_t *place)
{
  json_auto_t *saved = saved_order (c, key);

  if (saved && !same_offer (o, saved))
    return plug_error (c->err, GPUB_E_CONFLICT, "this token was used for %.40s in %.40s before",
                       json_str (saved, "type", "?"), json_str (saved, "region", "?"));
  if (saved && order_load (o, place, saved)) {
    l->doubt = true;
    return GPUB_OK;
  }
  order_done (o);
  return order_prepare (c, l->a, o);
}

int32_t
aws_create (void *self, struct gpub_call *call, const struct gpub_create *a, struct gpub_error *err)
{
  struct order o = { .market = 0 };
  struct ctx c = { self, call, err, o.region, 0 };
  struct launch l = { .c = &c, .a = a, .o = &o };
  AUTO_FREE char *raw = NULL, *user_data = NULL;
  char key[FIELD_MAX + 16];
  size_t len, place = 0;
  int32_t rc;

  if (!a->offer_ref || !ref_parse (a->offer_ref, o.region, o.type, &o.market))
    return plug_error (err, GPUB_E_INVALID, "'%.150s' is no offer of AWS",
                       a->offer_ref ? a->offer_ref : "");
  create_key (a->token ? a->token : "", key);
  rc = user_data_build (&c, a, &raw, &len);
  if (rc == GPUB_OK)
    rc = order_get (&c, &l, key, &o, &place);
  if (rc == GPUB_OK) {
    l.user_data = user_data = base64_encode (raw, len);
    rc = run (&l, key, place);
  }
  order_done (&o);
  return rc;
}
