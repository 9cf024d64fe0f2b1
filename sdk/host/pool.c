/* pool.c - the calls in flight: a bounded queue, worker threads, cancellation
 *
 * The main thread never waits for a worker: it queues, marks, wakes.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/json.h"
#include "sdk/host/host.h"

enum { QUEUE_MAX = 256, THREADS_MAX = 64, GRACE_MS = 2000, DEADLINE_MOST_MS = 60 * 60 * 1000 };

void
pool_init (struct host *h)
{
  struct pool *p = &h->pool;

  pthread_mutex_init (&p->lock, NULL);
  cond_init (&p->work);
  cond_init (&p->idle);
  p->max = h->plugin.max_parallel ? h->plugin.max_parallel : 1;
  if (p->max > THREADS_MAX)
    p->max = THREADS_MAX;
}

static void
push (struct gpub_call **list, struct gpub_call *c)
{
  while (*list)
    list = &(*list)->next;
  c->next = NULL;
  *list = c;
}

static void
drop (struct gpub_call **list, const struct gpub_call *c)
{
  while (*list != c)
    list = &(*list)->next;
  *list = c->next;
}

static struct gpub_call *
lookup (struct gpub_call *list, uint32_t id)
{
  while (list && list->id != id)
    list = list->next;
  return list;
}

static struct gpub_call *
take (struct pool *p)
{
  struct gpub_call *c;

  p->waiting++;
  while (!p->queue)
    pthread_cond_wait (&p->work, &p->lock);
  p->waiting--;
  c = p->queue;
  p->queue = c->next;
  p->queued--;
  push (&p->running, c);
  return c;
}

static void
set_worker (struct gpub_call *c, struct worker *w)
{
  pthread_mutex_lock (&c->lock);
  c->worker = w;
  pthread_mutex_unlock (&c->lock);
}

static void *
work (void *arg)
{
  struct worker w = { .host = arg, .multi = curl_multi_init () };
  struct pool *p = &w.host->pool;

  if (!w.multi)
    abort ();
  curl_multi_setopt (w.multi, CURLMOPT_PIPELINING, (long) CURLPIPE_NOTHING);
  curl_multi_setopt (w.multi, CURLMOPT_MAXCONNECTS, 4L);
  pthread_mutex_lock (&p->lock);
  for (;;) {
    struct gpub_call *c = take (p);

    pthread_mutex_unlock (&p->lock);
    set_worker (c, &w);
    run_call (c);
    pthread_mutex_lock (&p->lock);
    drop (&p->running, c);
    call_done (c); /* under the lock: nobody who looks it up can still hold it */
    free (c);
    p->active--;
    pthread_cond_broadcast (&p->idle);
  }
  return NULL;
}

/* Threads are made as calls need them: an idle provider has none. */
static bool
have_thread (struct host *h)
{
  struct pool *p = &h->pool;
  pthread_t thread;

  if (p->waiting > p->queued || p->threads == p->max)
    return true;
  if (pthread_create (&thread, NULL, work, h) != 0)
    return p->threads > 0;
  pthread_detach (thread);
  p->threads++;
  return true;
}

static const char *
enqueue (struct host *h, struct gpub_call *c)
{
  struct pool *p = &h->pool;
  const char *why = NULL;

  pthread_mutex_lock (&p->lock);
  if (p->draining)
    why = "the provider is shutting down";
  else if (p->queued == QUEUE_MAX)
    why = "too many calls are waiting for this provider";
  else if (!have_thread (h))
    why = "no thread for the call";
  if (!why) {
    push (&p->queue, c);
    p->queued++;
    p->active++;
    pthread_cond_signal (&p->work);
  }
  pthread_mutex_unlock (&p->lock);
  return why;
}

static int
parse (struct gpub_call *c, const char *body, size_t len, struct err *e)
{
  AUTO_JSON json_t *j = json_parse (body, len, e);
  int64_t ms;

  if (!j)
    return -1;
  c->type = run_type (json_str (j, "call", ""));
  if (!c->type)
    return err_set (e, ERR_UNSUPPORTED, "no call is named '%.40s'", json_str (j, "call", ""));
  ms = json_i64 (j, "deadline_ms", call_left_ms (c));
  c->deadline_ms = clock_boot_ms () + (ms < DEADLINE_MOST_MS ? ms : DEADLINE_MOST_MS);
  c->args = json_incref (json_object_get (j, "args"));
  return 0;
}

void
pool_call (struct host *h, uint32_t id, const char *body, size_t len)
{
  struct gpub_call *c = malloc (sizeof *c);
  struct err e = ERR_INIT;
  const char *why;

  if (!c)
    abort ();
  call_init (c, h, id);
  if (parse (c, body, len, &e) < 0) {
    run_refuse (h, id, e.kind, e.text);
  } else if ((why = enqueue (h, c))) {
    run_refuse (h, id, ERR_UNAVAILABLE, why);
  } else {
    return;
  }
  call_done (c);
  free (c);
}

static struct gpub_call *
find (struct pool *p, uint32_t id)
{
  struct gpub_call *c = lookup (p->running, id);

  return c ? c : lookup (p->queue, id);
}

void
pool_cancel (struct host *h, uint32_t id)
{
  struct gpub_call *c;

  pthread_mutex_lock (&h->pool.lock);
  c = find (&h->pool, id);
  if (c)
    call_stop (c, STOP_NOW);
  pthread_mutex_unlock (&h->pool.lock);
}

void
pool_ack (struct host *h, uint32_t id)
{
  struct gpub_call *c;

  pthread_mutex_lock (&h->pool.lock);
  c = find (&h->pool, id);
  if (c) {
    pthread_mutex_lock (&c->lock);
    c->acks++;
    pthread_cond_broadcast (&c->wake);
    pthread_mutex_unlock (&c->lock);
  }
  pthread_mutex_unlock (&h->pool.lock);
}

/* Looked at anew after each end, so that one long deadline does not outlive its call. */
static struct timespec
patience (const struct pool *p)
{
  int64_t now = clock_boot_ms (), latest = now;

  for (const struct gpub_call *c = p->running; c; c = c->next)
    latest = c->deadline_ms > latest ? c->deadline_ms : latest;
  return after_ms (latest - now + GRACE_MS);
}

int
pool_drain (struct host *h)
{
  struct pool *p = &h->pool;
  int rc = 0;

  pthread_mutex_lock (&p->lock);
  p->draining = true;
  for (struct gpub_call *c = p->queue; c; c = c->next)
    call_stop (c, STOP_DRAIN);
  for (struct gpub_call *c = p->running; c; c = c->next)
    call_stop (c, STOP_DRAIN);
  while (p->active > 0 && rc != ETIMEDOUT) {
    struct timespec until = patience (p);

    rc = pthread_cond_timedwait (&p->idle, &p->lock, &until);
  }
  rc = p->active > 0 ? -1 : 0;
  pthread_mutex_unlock (&p->lock);
  return rc;
}
