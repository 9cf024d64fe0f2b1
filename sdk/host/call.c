/* call.c - one call: its memory, its clock, how it is stopped
 *
 * Each call has one deadline, counted from the moment its frame was read.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "sdk/host/host.h"

enum { DEADLINE_DEFAULT_MS = 60 * 1000 };

struct keep {
  struct keep *next;
  void *bytes;
  size_t size;
};

void
cond_init (pthread_cond_t *cond)
{
  pthread_condattr_t attr;

  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (cond, &attr);
  pthread_condattr_destroy (&attr);
}

struct timespec
after_ms (int64_t ms)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  ts.tv_sec += ms / 1000;
  ts.tv_nsec += ms % 1000 * 1000000;
  if (ts.tv_nsec >= 1000000000) {
    ts.tv_nsec -= 1000000000;
    ts.tv_sec++;
  }
  return ts;
}

void
call_init (struct gpub_call *c, struct host *h, uint32_t id)
{
  memset (c, 0, sizeof *c);
  c->host = h;
  c->id = id;
  c->deadline_ms = clock_boot_ms () + DEADLINE_DEFAULT_MS;
  pthread_mutex_init (&c->lock, NULL);
  cond_init (&c->wake);
}

void
call_done (struct gpub_call *c)
{
  while (c->kept) {
    struct keep *k = c->kept;

    c->kept = k->next;
    explicit_bzero (k->bytes, k->size); /* a secret or an answer that holds one */
    free (k->bytes);
    free (k);
  }
  free (c->batch.text);
  json_decref (c->args);
  pthread_cond_destroy (&c->wake);
  pthread_mutex_destroy (&c->lock);
}

void
call_keep (struct gpub_call *c, void *bytes, size_t size)
{
  struct keep *k = malloc (sizeof *k);

  if (!k || !bytes)
    abort ();
  *k = (struct keep){ c->kept, bytes, size };
  c->kept = k;
}

void *
call_alloc (struct gpub_call *c, size_t size)
{
  void *bytes = calloc (1, size ? size : 1);

  call_keep (c, bytes, size);
  return bytes;
}

char *
call_strdup (struct gpub_call *c, const char *s)
{
  size_t n = strlen (s) + 1;

  return memcpy (call_alloc (c, n), s, n);
}

int64_t
call_left_ms (const struct gpub_call *c)
{
  int64_t left = c->deadline_ms - clock_boot_ms ();

  return left > 0 ? left : 0;
}

/* While draining, what is already sent may end; everything else stops. */
bool
call_stopped (const struct gpub_call *c)
{
  int stop = atomic_load (&c->stop);

  return stop == STOP_NOW || (stop == STOP_DRAIN && !atomic_load (&c->in_flight)) ||
         call_left_ms (c) == 0;
}

void
call_wait (struct gpub_call *c, int64_t ms, unsigned want_acks)
{
  int64_t left = call_left_ms (c);
  struct timespec until = after_ms (ms < left ? ms : left);
  int rc = 0;

  pthread_mutex_lock (&c->lock);
  while (rc != ETIMEDOUT && !call_stopped (c) && (want_acks == 0 || c->acks < want_acks))
    rc = pthread_cond_timedwait (&c->wake, &c->lock, &until);
  pthread_mutex_unlock (&c->lock);
}

int32_t
call_fail (struct gpub_call *c, int32_t kind, const char *fmt, ...)
{
  va_list ap;

  if (c->failed == GPUB_OK) {
    c->failed = kind;
    va_start (ap, fmt);
    vsnprintf (c->failed_text, sizeof c->failed_text, fmt, ap);
    va_end (ap);
  }
  return kind;
}

void
call_stop (struct gpub_call *c, int how)
{
  int now = atomic_load (&c->stop);

  if (now < how)
    atomic_store (&c->stop, how);
  pthread_mutex_lock (&c->lock);
  pthread_cond_broadcast (&c->wake);
  if (c->worker)
    curl_multi_wakeup (c->worker->multi);
  pthread_mutex_unlock (&c->lock);
  out_nudge (&c->host->out);
}
