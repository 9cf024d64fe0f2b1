/* remove.c - the end of a machine and of what it leaves
 *
 * A delete is an operation that is over later: it is enough that the cloud took it, since only a
 * get proves the end.  A boot disk goes with its machine; one that stayed is deleted once the
 * machine is gone.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <openssl/rand.h>

#include "plugins/nebius/nebius.h"

static const struct method delete_instance = { "compute",
                                               "nebius.compute.v1.InstanceService/Delete",
                                               "delete instance", &nb__operation__descriptor };

/* A key of its own each time: with the same one a delete that failed would only be told again. */
static void
new_key (char key[static 40])
{
  unsigned char b[16] = { 0 };

  RAND_bytes (b, sizeof b);
  snprintf (key, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
            b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
            b[15]);
}

int32_t
delete_by_id (const struct ctx *c, const struct method *m, const char *id)
{
  AUTO_MSG Nb__Operation *op = NULL;
  Nb__ById in = NB__BY_ID__INIT;
  struct refusal why;
  char key[40];
  int32_t rc;

  new_key (key);
  in.id = (char *) (uintptr_t) id;
  rc = api_change (c, m, key, &in, &op);
  if (rc == GPUB_OK && operation_over (op, &why) && why.kind != GPUB_OK)
    rc = plug_error (c->err, why.kind, "%s: %s: %.150s", m->what, why.code, why.text);
  return plug_kind_of_removal (rc);
}

struct sweep {
  const struct ctx *c;
  const struct gpub_ref *ref;
};

static int32_t
sweep_disk (void *ctx, const Nb__Disk *disk)
{
  const struct sweep *s = ctx;

  return disk_is_left_by (disk, s->ref) ? disk_delete (s->c, disk->metadata->id) : GPUB_OK;
}

int32_t
nebius_remove (void *self, struct gpub_call *call, const struct gpub_ref *ref,
               struct gpub_error *err)
{
  struct ctx c = { self, call, err };
  AUTO_MSG Nb__Instance *vm = NULL;
  struct sweep s = { &c, ref };
  int32_t rc;

  if (disk_is_id (ref->id))
    return disk_delete (&c, ref->id);
  rc = instance_read (&c, ref->id, &vm);
  if (rc == GPUB_E_NOT_FOUND)
    return ref->scope && *ref->scope ? disks_read (&c, ref->scope, sweep_disk, &s) : GPUB_OK;
  if (rc != GPUB_OK)
    return rc;
  if (instance_state (vm, OPERATION_UNKNOWN, 0) == GPUB_STATE_DELETING)
    return GPUB_OK;
  return delete_by_id (&c, &delete_instance, ref->id);
}
