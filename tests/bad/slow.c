/* slow.c - sleeps through its calls, but listens; notes how many run at once */
#include <stdatomic.h>

#define GPUB_NAME "slow"
#include "tests/bad/bad.h"

static _Atomic int running, most;

static int32_t
nap (struct gpub_call *call, uint32_t ms)
{
  int now = ++running;
  int32_t rc;

  if (now > most)
    most = now;
  host->log (call, GPUB_LOG_INFO, "slow.begin", "");
  rc = host->sleep (call, ms);
  running--;
  return rc;
}

static int32_t
probe (void *self UNUSED, struct gpub_call *call, struct gpub_identity *id, struct gpub_error *err)
{
  int32_t rc = nap (call, 300);

  snprintf (id->account, sizeof id->account, "most=%d", most);
  if (rc != GPUB_OK)
    snprintf (err->text, sizeof err->text, "ms_left=%u cancelled=%d", host->ms_left (call),
              host->cancelled (call));
  return rc;
}

static int32_t
list (void *self UNUSED, struct gpub_call *call, struct gpub_error *err UNUSED)
{
  return nap (call, 3600 * 1000);
}

BAD_ENTRY (.probe = probe, .list = list, .max_parallel = 3)
