/* good.c - a cloud without network, for tests of the broker: it behaves unless it is told not to
 *
 * Machines live in the host's state, so they survive this process.  The file named by `faults_file`
 * is read at every call: {"create": "capacity"} makes create fail with that kind; besides kinds
 * there are "lost" (done, and the reply lost), "empty", "partial", "failed" (listings), "hang" and
 * "crash".  The state's key "strays" holds resources without a machine: [{"kind", "id", "tags"}].
 */
#define _GNU_SOURCE
#include <pthread.h>

#include <jansson.h>

#define GPUB_NAME "good"
#include "tests/bad/bad.h"

enum { SHARDS = 16 }; /* of the machines' book, since one key holds 64 KiB */

static const char *faults_file, *address, *ssh_user;
static json_t *offers;
static int64_t boot_ms, ssh_port, capacity;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const kinds[] = {
  "ok",           "invalid",     "auth",    "not-found", "conflict",    "quota",    "capacity",
  "rate-limited", "unavailable", "unknown", "cancelled", "unsupported", "internal",
};

static const char default_offers[] =
    "[{\"offer_ref\":\"h100\",\"region\":\"eu-north1\",\"gpu_name\":\"NVIDIA H100 80GB "
    "HBM3\",\"gpu_count\":1,"
    "\"vram_mib\":81920,\"vcpus\":26,\"ram_mib\":204800,\"disk_gib\":500,\"price\":2.10},"
    "{\"offer_ref\":\"h100x8\",\"region\":\"eu-north1\",\"gpu_name\":\"NVIDIA H100 80GB "
    "HBM3\",\"gpu_count\":8,"
    "\"vram_mib\":81920,\"vcpus\":208,\"ram_mib\":1638400,\"disk_gib\":2000,\"price\":16.00},"
    "{\"offer_ref\":\"l40s\",\"region\":\"us-east1\",\"gpu_name\":\"NVIDIA L40S\",\"gpu_count\":1,"
    "\"vram_mib\":46068,\"vcpus\":16,\"ram_mib\":131072,\"disk_gib\":200,\"price\":0.90}]";

static const struct gpub_option options[] = {
  { sizeof options[0], "offers", GPUB_OPT_JSON, 0, default_offers, "what there is to rent" },
  { sizeof options[0], "boot", GPUB_OPT_DURATION, 0, "0s", "from create to running" },
  { sizeof options[0], "address", GPUB_OPT_STRING, 0, "127.0.0.1", "of every machine" },
  { sizeof options[0], "ssh_user", GPUB_OPT_STRING, 0, "ubuntu", "of every machine" },
  { sizeof options[0], "ssh_port", GPUB_OPT_INT, 0, "22", "of every machine" },
  { sizeof options[0], "capacity", GPUB_OPT_INT, 0, "0",
    "how many machines there may be, 0: any number" },
  { sizeof options[0], "faults_file", GPUB_OPT_STRING, 0, NULL,
    "what is to go wrong, read at every call" },
};

static const char *
value (const struct gpub_config *conf, const char *name)
{
  for (uint64_t i = 0; i < conf->count; i++)
    if (strcmp (conf->values[i].key, name) == 0)
      return strdup (conf->values[i].value);
  return NULL;
}

static int32_t
good_open (const struct gpub_host *h, struct gpub_call *call UNUSED, const struct gpub_config *conf,
           void **self, struct gpub_error *err)
{
  host = h;
  *self = NULL;
  offers = json_loads (value (conf, "offers"), 0, NULL);
  boot_ms = strtoll (value (conf, "boot"), NULL, 10);
  ssh_port = strtoll (value (conf, "ssh_port"), NULL, 10);
  capacity = strtoll (value (conf, "capacity"), NULL, 10);
  address = value (conf, "address");
  ssh_user = value (conf, "ssh_user");
  faults_file = value (conf, "faults_file");
  if (json_is_array (offers))
    return GPUB_OK;
  snprintf (err->text, sizeof err->text, "'offers' must be a list of groups");
  return GPUB_E_INVALID;
}

static void
fault_of (const char *call, char *out, size_t size)
{
  json_t *j = faults_file ? json_load_file (faults_file, 0, NULL) : NULL;
  const char *fault = json_string_value (json_object_get (j, call));

  snprintf (out, size, "%s", fault ? fault : "");
  json_decref (j);
}

/* GPUB_OK: go on (and look at fault). */
static int32_t
begin (struct gpub_call *call, const char *name, char fault[32], struct gpub_error *err)
{
  fault_of (name, fault, 32);
  if (strcmp (fault, "crash") == 0)
    abort ();
  while (strcmp (fault, "hang") == 0 && host->sleep (call, 1000) == GPUB_OK)
    ;
  if (strcmp (fault, "hang") == 0)
    return GPUB_E_CANCELLED;
  for (int32_t i = 1; i <= GPUB_E_INTERNAL; i++)
    if (strcmp (fault, kinds[i]) == 0) {
      snprintf (err->text, sizeof err->text, "%s fails, as it was told", name);
      snprintf (err->provider_code, sizeof err->provider_code, "TOLD");
      return i;
    }
  return GPUB_OK;
}

/* ---- the book ---- */

static unsigned
shard_of (const char *id)
{
  unsigned sum = 0;

  while (*id)
    sum = sum * 31 + (unsigned char) *id++;
  return sum % SHARDS;
}

static json_t *
book_read (struct gpub_call *call, unsigned shard)
{
  char key[32];
  const void *bytes;
  uint64_t len;

  snprintf (key, sizeof key, "machines-%u", shard);
  if (host->state_get (call, key, &bytes, &len) != GPUB_OK)
    return json_object ();
  return json_loadb (bytes, len, 0, NULL);
}

static int32_t
book_write (struct gpub_call *call, unsigned shard, json_t *book)
{
  char key[32], *text = json_dumps (book, JSON_COMPACT);
  int32_t rc;

  snprintf (key, sizeof key, "machines-%u", shard);
  rc = host->state_put (call, key, text, strlen (text));
  free (text);
  return rc;
}

static const char *
str (const json_t *j, const char *key)
{
  return json_string_value (json_object_get (j, key));
}

static int64_t
num (const json_t *j, const char *key)
{
  return json_integer_value (json_object_get (j, key));
}

static int32_t
emit (struct gpub_call *call, const char *id, const json_t *j)
{
  json_t *marks = json_object_get (j, "tags"), *tag;
  struct gpub_kv tags[16];
  uint64_t n = 0;
  const char *key;
  struct gpub_machine m = {
    .size = sizeof m,
    .known =
        GPUB_MACHINE_PRICE | GPUB_MACHINE_SSH_PORT | GPUB_MACHINE_CREATED | GPUB_MACHINE_NOT_AFTER,
    .id = id,
    .scope = str (j, "region"),
    .region = str (j, "region"),
    .name = str (j, "name"),
    .instance_type = str (j, "offer_ref"),
    .ssh_user = ssh_user,
    .ssh_port = (uint32_t) ssh_port,
    .price_udollar = (uint64_t) num (j, "price_udollar"),
    .created_ms = num (j, "created_ms"),
    .not_after_ms = num (j, "not_after_ms"),
    .tags = tags,
    .raw_state = "BOOTING",
    .state = GPUB_STATE_CREATING,
  };

  if (m.not_after_ms == 0)
    m.known &= ~GPUB_MACHINE_NOT_AFTER;
  if (host->now_ms (call) >= m.created_ms + boot_ms) {
    m.state = GPUB_STATE_RUNNING;
    m.raw_state = "ACTIVE";
    m.address = address;
  }
  json_object_foreach (marks, key, tag)
  {
    if (n < 16)
      tags[n++] = (struct gpub_kv){ key, json_string_value (tag) };
  }
  m.ntags = n;
  return host->emit_machine (call, &m);
}

/* ---- resources without a machine ---- */

static json_t *
strays_read (struct gpub_call *call)
{
  const void *bytes;
  uint64_t len;

  if (host->state_get (call, "strays", &bytes, &len) != GPUB_OK)
    return json_array ();
  return json_loadb (bytes, len, 0, NULL);
}

static int
is_among (const json_t *stray, const struct gpub_ref *ref)
{
  for (uint64_t i = 0; i < ref->nresources; i++) {
    const struct gpub_resource *r =
        GPUB_AT (struct gpub_resource, ref->resources, ref->resources_stride, i);

    if (strcmp (r->id, str (stray, "id")) == 0 && strcmp (r->kind, str (stray, "kind")) == 0)
      return 1;
  }
  return 0;
}

static int32_t
emit_stray (struct gpub_call *call, const json_t *j)
{
  struct gpub_kv tags[16];
  struct gpub_resource r = { .size = sizeof r,
                             .kind = str (j, "kind"),
                             .id = str (j, "id"),
                             .scope = "good",
                             .price_udollar = (uint64_t) num (j, "price_udollar"),
                             .billable = 1,
                             .tags = tags };
  const char *key;
  json_t *tag;

  json_object_foreach (json_object_get (j, "tags"), key, tag)
  {
    if (r.ntags < 16)
      tags[r.ntags++] = (struct gpub_kv){ key, json_string_value (tag) };
  }
  return host->emit_resource (call, &r);
}

/* Those with the token, or those of the ref, or all; NOT_FOUND: none. */
static int32_t
emit_strays (struct gpub_call *call, const char *token, const struct gpub_ref *ref)
{
  json_t *all = strays_read (call), *j;
  int32_t rc = GPUB_E_NOT_FOUND;
  size_t i;

  json_array_foreach (all, i, j)
  {
    const char *own = str (json_object_get (j, "tags"), "gpubroker-token");

    if ((!token || (own && strcmp (own, token) == 0)) && (!ref || is_among (j, ref)))
      rc = emit_stray (call, j);
    if (rc != GPUB_OK && rc != GPUB_E_NOT_FOUND)
      break;
  }
  json_decref (all);
  return rc;
}

static int32_t
remove_strays (struct gpub_call *call, const struct gpub_ref *ref)
{
  json_t *all = strays_read (call);
  char *text;
  int32_t rc;

  for (size_t i = json_array_size (all); i-- > 0;)
    if (is_among (json_array_get (all, i), ref))
      json_array_remove (all, i);
  text = json_dumps (all, JSON_COMPACT);
  rc = host->state_put (call, "strays", text, strlen (text));
  free (text);
  json_decref (all);
  return rc;
}

/* ---- calls ---- */

static int32_t
good_probe (void *self UNUSED, struct gpub_call *call, struct gpub_identity *id,
            struct gpub_error *err)
{
  char fault[32];
  int32_t rc = begin (call, "probe", fault, err);

  snprintf (id->account, sizeof id->account, "good");
  id->balance_udollar = 100000000;
  id->known = GPUB_IDENTITY_BALANCE;
  return rc;
}

static uint32_t
u32 (const json_t *j, const char *key)
{
  return (uint32_t) num (j, key);
}

static uint64_t
price_of (const json_t *j)
{
  return (uint64_t) (json_number_value (json_object_get (j, "price")) * 1e6 + 0.5);
}

static uint64_t
known_of (const json_t *j)
{
  static const struct {
    const char *name;
    uint64_t bit;
  } bits[] = {
    { "price", GPUB_OFFER_PRICE },   { "gpu_count", GPUB_OFFER_GPUS },
    { "vram_mib", GPUB_OFFER_VRAM }, { "vcpus", GPUB_OFFER_VCPUS },
    { "ram_mib", GPUB_OFFER_RAM },   { "disk_gib", GPUB_OFFER_DISK },
    { "stock", GPUB_OFFER_STOCK },
  };
  uint64_t known = 0;

  for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
    known |= json_object_get (j, bits[i].name) ? bits[i].bit : 0;
  return known;
}

static int32_t
emit_one_offer (struct gpub_call *call, const json_t *j)
{
  const char *market = str (j, "market");
  struct gpub_offer o = {
    .size = sizeof o,
    .known = known_of (j),
    .offer_ref = str (j, "offer_ref"),
    .scope = str (j, "region"),
    .region = str (j, "region"),
    .country = str (j, "country"),
    .cloud = str (j, "cloud"),
    .instance_type = str (j, "instance_type") ? str (j, "instance_type") : str (j, "offer_ref"),
    .gpu_name = str (j, "gpu_name"),
    .vram_mib = (uint64_t) num (j, "vram_mib"),
    .ram_mib = (uint64_t) num (j, "ram_mib"),
    .gpu_count = u32 (j, "gpu_count"),
    .vcpus = u32 (j, "vcpus"),
    .disk_gib = u32 (j, "disk_gib"),
    .disk_max_gib = u32 (j, "disk_max_gib"),
    .stock = u32 (j, "stock"),
    .market = market && strcmp (market, "spot") == 0 ? GPUB_MARKET_SPOT : GPUB_MARKET_ON_DEMAND,
    .availability = GPUB_AVAIL_AVAILABLE,
    .arch = str (j, "arch") ? str (j, "arch") : "x86_64",
    .interconnect = str (j, "interconnect"),
    .currency = str (j, "currency"),
    .price_udollar = price_of (j),
    .driver = str (j, "driver"),
    .fabric = str (j, "fabric"),
  };

  return host->emit_offer (call, &o);
}

static int32_t
end_scope (struct gpub_call *call, const char *fault)
{
  uint32_t how = strcmp (fault, "partial") == 0  ? GPUB_SCOPE_PARTIAL
                 : strcmp (fault, "failed") == 0 ? GPUB_SCOPE_FAILED
                                                 : GPUB_SCOPE_COMPLETE;

  return host->scope_done (call, "good", how,
                           how == GPUB_SCOPE_COMPLETE ? GPUB_OK : GPUB_E_UNAVAILABLE, NULL);
}

static int32_t
good_list_offers (void *self UNUSED, struct gpub_call *call, const struct gpub_offer_query *q,
                  struct gpub_error *err)
{
  char fault[32];
  int32_t rc = begin (call, "list_offers", fault, err);
  size_t i;
  json_t *j;

  json_array_foreach (offers, i, j)
  {
    if (rc != GPUB_OK || strcmp (fault, "empty") == 0 || strcmp (fault, "failed") == 0)
      break;
    if (!q->offer_ref || strcmp (q->offer_ref, str (j, "offer_ref")) == 0)
      rc = emit_one_offer (call, j);
  }
  return rc == GPUB_OK ? end_scope (call, fault) : rc;
}

static const json_t *
offer (const char *ref)
{
  size_t i;
  json_t *j;

  json_array_foreach (offers, i, j)
  {
    if (strcmp (str (j, "offer_ref"), ref) == 0)
      return j;
  }
  return NULL;
}

static json_t *
new_machine (struct gpub_call *call, const json_t *o, const struct gpub_create *args)
{
  json_t *j = json_pack ("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:{}}", "name", args->name, "token",
                         args->token, "offer_ref", args->offer_ref, "region",
                         str (o, "region") ? str (o, "region") : "r1", "price_udollar",
                         (json_int_t) price_of (o), "created_ms", (json_int_t) host->now_ms (call),
                         "not_after_ms", (json_int_t) args->not_after_ms, "tags");

  for (uint64_t i = 0; i < args->ntags; i++)
    json_object_set_new (json_object_get (j, "tags"), args->tags[i].key,
                         json_string (args->tags[i].value));
  return j;
}

static int64_t
count (struct gpub_call *call)
{
  int64_t n = 0;

  for (unsigned s = 0; s < SHARDS; s++) {
    json_t *book = book_read (call, s);

    n += (int64_t) json_object_size (book);
    json_decref (book);
  }
  return n;
}

/* The id is the token's, so a create that is sent again finds its machine. */
static int32_t
store (struct gpub_call *call, const json_t *o, const struct gpub_create *args, const char *id,
       json_t **machine, struct gpub_error *err)
{
  json_t *book = book_read (call, shard_of (id)), *old = json_object_get (book, id);
  int32_t rc = GPUB_OK;

  if (old && strcmp (str (old, "offer_ref"), args->offer_ref) != 0) {
    snprintf (err->text, sizeof err->text, "token %s was used for offer %s", args->token,
              str (old, "offer_ref"));
    rc = GPUB_E_CONFLICT;
  } else if (!old && capacity > 0 && count (call) >= capacity) {
    snprintf (err->text, sizeof err->text, "all %lld machines are rented", (long long) capacity);
    rc = GPUB_E_CAPACITY;
  } else if (!old) {
    json_object_set_new (book, id, new_machine (call, o, args));
    rc = book_write (call, shard_of (id), book);
  }
  *machine = json_incref (json_object_get (book, id));
  json_decref (book);
  return rc;
}

static int32_t
good_create (void *self UNUSED, struct gpub_call *call, const struct gpub_create *args,
             struct gpub_error *err)
{
  const json_t *o = offer (args->offer_ref);
  json_t *machine = NULL;
  char fault[32], id[128];
  int32_t rc = begin (call, "create", fault, err);

  if (rc != GPUB_OK)
    return rc;
  if (!o || price_of (o) > args->max_price_udollar) {
    snprintf (err->text, sizeof err->text, o ? "offer %s now costs more" : "offer %s is gone",
              args->offer_ref);
    return GPUB_E_CAPACITY;
  }
  snprintf (id, sizeof id, "m-%s", args->token);
  pthread_mutex_lock (&lock);
  rc = store (call, o, args, id, &machine, err);
  pthread_mutex_unlock (&lock);
  if (rc == GPUB_OK && strcmp (fault, "lost") == 0) {
    snprintf (err->text, sizeof err->text, "the reply was lost, as it was told");
    rc = GPUB_E_UNKNOWN;
  }
  if (rc == GPUB_OK)
    rc = emit (call, id, machine);
  json_decref (machine);
  return rc;
}

static int32_t
good_get (void *self UNUSED, struct gpub_call *call, const struct gpub_ref *ref,
          struct gpub_error *err)
{
  json_t *book;
  char fault[32];
  int32_t rc = begin (call, "get", fault, err);

  if (rc != GPUB_OK)
    return rc;
  if (!*ref->id)
    return emit_strays (call, NULL, ref);
  book = book_read (call, shard_of (ref->id));
  rc = json_object_get (book, ref->id) ? emit (call, ref->id, json_object_get (book, ref->id))
                                       : GPUB_E_NOT_FOUND;
  json_decref (book);
  if (rc == GPUB_E_NOT_FOUND)
    snprintf (err->text, sizeof err->text, "no machine %s", ref->id);
  return rc;
}

static int
is_wanted (const json_t *j, const struct gpub_find *find)
{
  if (!find)
    return 1;
  if (find->token && *find->token)
    return strcmp (str (j, "token"), find->token) == 0;
  return find->name && strcmp (str (j, "name"), find->name) == 0;
}

static int32_t
walk (struct gpub_call *call, const struct gpub_find *find, const char *fault)
{
  int32_t rc = GPUB_OK;

  for (unsigned s = 0; s < SHARDS && rc == GPUB_OK; s++) {
    json_t *book = book_read (call, s), *j;
    const char *id;

    json_object_foreach (book, id, j)
    {
      if (rc == GPUB_OK && is_wanted (j, find) && strcmp (fault, "empty") != 0)
        rc = emit (call, id, j);
    }
    json_decref (book);
  }
  if (rc == GPUB_OK && strcmp (fault, "empty") != 0)
    rc = emit_strays (call, find ? find->token : NULL, NULL);
  return rc == GPUB_OK || rc == GPUB_E_NOT_FOUND ? end_scope (call, fault) : rc;
}

static int32_t
good_find (void *self UNUSED, struct gpub_call *call, const struct gpub_find *find,
           struct gpub_error *err)
{
  char fault[32];
  int32_t rc = begin (call, "find", fault, err);

  return rc == GPUB_OK ? walk (call, find, fault) : rc;
}

static int32_t
good_list (void *self UNUSED, struct gpub_call *call, struct gpub_error *err)
{
  char fault[32];
  int32_t rc = begin (call, "list", fault, err);

  return rc == GPUB_OK ? walk (call, NULL, fault) : rc;
}

static int32_t
good_remove (void *self UNUSED, struct gpub_call *call, const struct gpub_ref *ref,
             struct gpub_error *err)
{
  json_t *book;
  char fault[32];
  int32_t rc = begin (call, "remove", fault, err);

  if (rc != GPUB_OK)
    return rc;
  if (!*ref->id && ref->nresources)
    return remove_strays (call, ref);
  pthread_mutex_lock (&lock);
  book = book_read (call, shard_of (ref->id));
  if (json_object_del (book, ref->id) == 0)
    rc = book_write (call, shard_of (ref->id), book);
  json_decref (book);
  pthread_mutex_unlock (&lock);
  return strcmp (fault, "lost") == 0 ? GPUB_E_UNKNOWN : rc;
}

static int32_t
good_set_not_after (void *self UNUSED, struct gpub_call *call, const struct gpub_ref *ref,
                    int64_t ms, struct gpub_error *err)
{
  json_t *book, *j;
  char fault[32];
  int32_t rc = begin (call, "set_not_after", fault, err);

  if (rc != GPUB_OK)
    return rc;
  pthread_mutex_lock (&lock);
  book = book_read (call, shard_of (ref->id));
  j = json_object_get (book, ref->id);
  if (j) {
    json_object_set_new (j, "not_after_ms", json_integer (ms));
    rc = book_write (call, shard_of (ref->id), book);
  }
  json_decref (book);
  pthread_mutex_unlock (&lock);
  return j ? rc : GPUB_E_NOT_FOUND;
}

static int32_t
good_console_log (void *self UNUSED, struct gpub_call *call UNUSED, const struct gpub_ref *ref,
                  char *out, uint64_t cap, uint64_t *len, struct gpub_error *err UNUSED)
{
  *len = (uint64_t) snprintf (out, cap, "%s booted\n", ref->id);
  return GPUB_OK;
}

BAD_ENTRY (.description = "a cloud without network", .options = options,
           .noptions = sizeof options / sizeof options[0], .options_stride = sizeof options[0],
           .caps = GPUB_CAP_IDEMPOTENT_CREATE | GPUB_CAP_TAGS | GPUB_CAP_USER_DATA |
                   GPUB_CAP_KILL_SWITCH | GPUB_CAP_CONSOLE | GPUB_CAP_HOSTS_KUBERNETES,
           .max_parallel = 8, .idempotency_window_s = 3600, .user_data_max = 65536,
           .user_data_flags = GPUB_USER_DATA_PLAIN, .open = good_open, .probe = good_probe,
           .list_offers = good_list_offers, .create = good_create, .get = good_get,
           .find = good_find, .list = good_list, .remove = good_remove,
           .set_not_after = good_set_not_after, .console_log = good_console_log)
