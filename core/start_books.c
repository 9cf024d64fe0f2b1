/* start_books.c - the books and whose they are: opened, compared with the mark beside them, read */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "core/cleanup.h"
#include "core/start.h"

/* ---- identity: the mark on what is ours, in the store and beside it ---- */

static void
make_uuid (char out[40])
{
  unsigned char r[16];

  RAND_bytes (r, sizeof r);
  r[6] = (unsigned char) ((r[6] & 0x0f) | 0x40);
  r[8] = (unsigned char) ((r[8] & 0x3f) | 0x80);
  snprintf (out, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", r[0],
            r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14],
            r[15]);
}

bool
start_uuid (const char *text)
{
  static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

  for (size_t i = 0; i < sizeof form - 1; i++)
    if (form[i] == '-' ? text[i] != '-' : !strchr ("0123456789abcdef", text[i]) || !text[i])
      return false;
  return text[sizeof form - 1] == '\0';
}

static int
read_beside (const char *path, char out[40])
{
  AUTO_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read (fd, out, 36) : -1;

  out[n > 0 ? n : 0] = '\0';
  return n == 36 ? 0 : -1;
}

static int
write_beside (const char *path, const char *uuid, struct err *e)
{
  AUTO_CLOSE int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  if (fd < 0 || write (fd, uuid, 36) != 36 || fsync (fd) < 0)
    return err_set (e, ERR_INTERNAL, "%s: %s", path, strerror (errno));
  return 0;
}

/* A store of one installation in the folder of another would take the other's machines for its own.
 */
static int
identify (struct broker *b, const char *given, struct err *e)
{
  AUTO_FREE char *stored = store_meta (b->store, "instance");
  char path[4200], beside[40];
  bool have;

  if (store_failed (b->store)) /* never a new identity because the old one could not be read */
    return store_commit (b->store, e);
  snprintf (path, sizeof path, "%s/instance", b->conf.broker.state_dir);
  have = read_beside (path, beside) == 0;
  if (stored && have && strcmp (stored, beside) != 0)
    return err_set (e, ERR_INVALID,
                    "%s says %s and the store says %s: this store belongs to another installation: "
                    "restore both from one backup",
                    path, beside, stored);
  if (given && (stored || have) && strcmp (stored ? stored : beside, given) != 0)
    return err_set (e, ERR_INVALID, "%s says %s: this is not the folder of installation %s", path,
                    stored ? stored : beside, given);
  if (b->rebuild && !stored && !have && !given)
    return err_set (e, ERR_INVALID,
                    "%s is lost, too: say which UUID the tag gpubroker-owner of our machines has: "
                    "gpubrokerd --rebuild --instance UUID",
                    path);
  if (stored)
    snprintf (b->instance, sizeof b->instance, "%s", stored);
  else if (have || given)
    snprintf (b->instance, sizeof b->instance, "%s", have ? beside : given);
  else
    make_uuid (b->instance);
  if (!stored)
    store_put_meta (b->store, "instance", b->instance);
  return have ? 0 : write_beside (path, b->instance, e);
}

static void
next_epoch (struct broker *b)
{
  AUTO_FREE char *stored = store_meta (b->store, "epoch");
  char text[24];

  b->epoch = (stored ? strtoll (stored, NULL, 10) : 0) + 1;
  if (!stored && b->rebuild) /* clients have seen small ones */
    b->epoch = now_ms () / 1000;
  snprintf (text, sizeof text, "%lld", (long long) b->epoch);
  store_put_meta (b->store, "epoch", text);
}

/* ---- the books ---- */

static void
take_lease (void *ctx, struct lease *l)
{
  engine_take (ctx, l);
}

static void
take_op (void *ctx, struct op *o)
{
  struct broker *b = ctx;

  *vec_push (&b->ops) = o;
}

static int
load_books (struct broker *b, const char *instance, struct err *e)
{
  AUTO_FREE char *memory = NULL;

  if (!b->rebuild)
    ballast_start (&b->ballast, b->conf.broker.state_dir); /* opening writes, too */
  b->store = store_open (b->conf.broker.state_dir, e);
  if (!b->store || identify (b, instance, e) < 0)
    return -1;
  next_epoch (b);
  b->seq = store_last_event (b->store);
  b->next_lease = store_max_lease (b->store) + 1;
  b->next_op = store_max_op (b->store) + 1;
  if (store_each_live (b->store, take_lease, b, e) < 0 ||
      store_each_running (b->store, take_op, b, e) < 0)
    return -1;
  spent_start (b);
  b->memory = memory_new ();
  memory = store_meta (b->store, "memory");
  if (memory) {
    AUTO_JSON json_t *j = json_loads (memory, 0, NULL);

    memory_load (b->memory, j, now_ms ());
  }
  return store_commit (b->store, e);
}

int
start_books (struct broker *b, const char *instance, struct err *e)
{
  if (load_books (b, instance, e) == 0)
    return 0;
  if (e->kind == ERR_INVALID) /* it will be no better the next time */
    b->exit_code = START_BOOKS;
  return -1;
}
