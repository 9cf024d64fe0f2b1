/* remove.c - the end of a machine, its postponement, and its console */
#include "config.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

#define FOR_EVER "9999999999" /* seconds: the year 2286 */

/* Protected from termination, say: refused now is not refused for ever. */
static int32_t
verdict (const struct ctx *c, const struct gpub_ref *ref, int32_t rc)
{
  if (rc == GPUB_E_NOT_FOUND) {
    rc = ref_absent (c, ref);
    return rc == GPUB_E_NOT_FOUND ? GPUB_OK : rc;
  }
  return rc == GPUB_E_INVALID || rc == GPUB_E_CONFLICT || rc == GPUB_E_CAPACITY ||
                 rc == GPUB_E_QUOTA
             ? GPUB_E_UNAVAILABLE
             : rc;
}

static void
forget_order (const struct ctx *c, const struct gpub_ref *ref)
{
  char key[FIELD_MAX + 16];

  if (!ref->token || !*ref->token)
    return;
  create_key (ref->token, key);
  c->s->host->state_put (c->call, key, NULL, 0);
}

static int32_t
terminate (const struct ctx *c, const struct gpub_ref *ref)
{
  AUTO_QUERY struct query q = query_new ("TerminateInstances");

  query_add (&q, "InstanceId.1", ref->id);
  return verdict (c, ref, ec2_change (c, "terminate instance", &q, 0, NULL));
}

static void
note_removed (const struct ctx *c, const struct gpub_ref *ref)
{
  json_auto_t *yes = json_true ();

  cache_put (c, ref->id, yes);
}

/* The request first: it could ask for another machine.  Its failure does not keep this one. */
int32_t
aws_remove (void *self, struct gpub_call *call, const struct gpub_ref *ref, struct gpub_error *err)
{
  struct ctx c = { self, call, err, ref->scope, 0 };
  int32_t rc = ref_check (&c, ref), resources;

  if (rc != GPUB_OK)
    return rc;
  resources = resources_remove (&c, ref);
  if (ref->id && *ref->id)
    rc = terminate (&c, ref);
  if (rc == GPUB_OK && ref->id && *ref->id)
    note_removed (&c, ref);
  if (rc == GPUB_OK)
    rc = resources;
  if (rc == GPUB_OK)
    forget_order (&c, ref);
  return rc;
}

int32_t
aws_set_not_after (void *self, struct gpub_call *call, const struct gpub_ref *ref, int64_t ms,
                   struct gpub_error *err)
{
  struct ctx c = { self, call, err, ref->scope, 0 };
  AUTO_QUERY struct query q = query_new ("CreateTags");
  char seconds[24];
  int32_t rc = ref_check (&c, ref);

  if (rc != GPUB_OK)
    return rc;
  snprintf (seconds, sizeof seconds, "%lld", (long long) (ms / 1000));
  query_add (&q, "ResourceId.1", ref->id ? ref->id : "");
  query_add (&q, "Tag.1.Key", TAG_NOT_AFTER);
  query_add (&q, "Tag.1.Value", ms ? seconds : FOR_EVER);
  return ec2_change (&c, "move kill switch", &q, 0, NULL);
}

/* ---- Console ---- */

/* Whole groups of four; newlines between them are allowed. */
static size_t
base64_decode (const char *text, unsigned char *out)
{
  EVP_ENCODE_CTX *x = EVP_ENCODE_CTX_new ();
  int n = 0, more = 0;
  bool good;

  EVP_DecodeInit (x);
  good = EVP_DecodeUpdate (x, out, &n, (const unsigned char *) text, (int) strlen (text)) >= 0 &&
         EVP_DecodeFinal (x, out + n, &more) >= 0;
  EVP_ENCODE_CTX_free (x);
  return good ? (size_t) (n + more) : 0;
}

int32_t
aws_console_log (void *self, struct gpub_call *call, const struct gpub_ref *ref, char *out,
                 uint64_t cap, uint64_t *len, struct gpub_error *err)
{
  struct ctx c = { self, call, err, ref->scope, 0 };
  AUTO_QUERY struct query q = query_new ("GetConsoleOutput");
  AUTO_FREE unsigned char *bytes = NULL;
  json_auto_t *answer = NULL;
  const char *text;
  size_t n;
  int32_t rc = ref_check (&c, ref);

  if (rc != GPUB_OK)
    return rc;
  query_add (&q, "InstanceId", ref->id ? ref->id : "");
  rc = ec2_read (&c, "read console", &q, &answer);
  if (rc != GPUB_OK)
    return rc;
  text = json_str (answer, "output", "");
  bytes = malloc (strlen (text) + 4);
  if (!bytes)
    abort ();
  n = base64_decode (text, bytes);
  *len = n < cap ? n : cap;
  memcpy (out, bytes + n - *len, *len);
  return GPUB_OK;
}
