/* remove.c - the end of a machine, and its console
 *
 * Rules, disks and the root volume go with the machine.  Whether its address does is not
 * documented, so it is detached first; a machine that is still being built refuses to be deleted.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"

enum { CONSOLE_LINES = 500, CONSOLE_TRIES = 10, CONSOLE_PAUSE_MS = 500 };

/* One that is still being attached counts, too. */
static bool
has_address (const json_t *vm)
{
  return *json_str (vm, "floating_ip", "") ||
         strcmp (json_str (vm, "floating_ip_status", ""), "ATTACHING") == 0;
}

/* Its failure changes nothing: what the delete says counts. */
static void
detach (const struct ctx *c, const char *id)
{
  char path[96];

  snprintf (path, sizeof path, "/core/virtual-machines/%s/detach-floatingip", id);
  if (api_change (c, "detach address", "POST", path, NULL, NULL) != GPUB_OK)
    c->s->host->log (c->call, GPUB_LOG_INFO, "hyperstack.detach.failed", c->err->text);
}

int32_t
hyperstack_remove (void *self, struct gpub_call *call, const struct gpub_ref *ref,
                   struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *vm = NULL;
  char path[64];
  int32_t rc = vm_read (&c, ref, &vm);

  if (rc == GPUB_E_NOT_FOUND)
    return GPUB_OK;
  if (rc != GPUB_OK)
    return rc;
  if (vm_state (vm) == GPUB_STATE_DELETING || vm_state (vm) == GPUB_STATE_GONE)
    return GPUB_OK;
  if (has_address (vm))
    detach (&c, ref->id);
  snprintf (path, sizeof path, "/core/virtual-machines/%s", ref->id);
  return plug_kind_of_removal (api_change (&c, "delete VM", "DELETE", path, NULL, NULL));
}

/* ---- Console: asked for, then fetched once it is there ---- */

static const char *
copy_tail (const char *text, char *out, uint64_t cap, uint64_t *len)
{
  size_t n = strlen (text);

  *len = n < cap ? n : cap;
  memcpy (out, text + n - *len, *len);
  return text;
}

static int32_t
fetch_log (const struct ctx *c, const char *path, char *out, uint64_t cap, uint64_t *len)
{
  for (int i = 0; i < CONSOLE_TRIES; i++) {
    json_auto_t *body = NULL;
    const char *text;
    int32_t rc = api_get (c, "read console", path, &body);

    if (rc != GPUB_OK)
      return rc;
    text = json_str (body, "logs", NULL);
    if (text && copy_tail (text, out, cap, len))
      return GPUB_OK;
    if ((rc = c->s->host->sleep (c->call, CONSOLE_PAUSE_MS)) != GPUB_OK)
      return rc;
  }
  return plug_error (c->err, GPUB_E_UNAVAILABLE, "read console: not there yet");
}

int32_t
hyperstack_console_log (void *self, struct gpub_call *call, const struct gpub_ref *ref, char *out,
                        uint64_t cap, uint64_t *len, struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  json_auto_t *vm = NULL, *answer = NULL, *body = json_pack ("{s:i}", "length", CONSOLE_LINES);
  char path[128];
  int32_t rc = vm_read (&c, ref, &vm);

  if (rc != GPUB_OK)
    return rc;
  snprintf (path, sizeof path, "/core/virtual-machines/%s/logs", ref->id);
  rc = api_change (&c, "ask for console", "POST", path, body, &answer);
  if (rc != GPUB_OK)
    return rc;
  snprintf (path, sizeof path, "/core/virtual-machines/%s/logs?request_id=%lld", ref->id,
            (long long) json_i64 (answer, "request_id", 0));
  return fetch_log (&c, path, out, cap, len);
}
