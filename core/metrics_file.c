/* metrics_file.c - the metrics as a file for the textfile collector: whole or not at all */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/broker.h"
#include "core/log.h"
#include "core/metrics.h"

/* Its name does not end in .prom, so a collector never reads it half. */
static int
write_beside (const char *path, const char *text)
{
  AUTO_CLOSE int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

  if (fd < 0 || fchmod (fd, 0644) < 0) /* the daemon's umask is 077 */
    return -1;
  for (size_t left = strlen (text); left > 0;) {
    ssize_t n = write (fd, text, left);

    if (n < 0)
      return -1;
    text += n;
    left -= (size_t) n;
  }
  return 0;
}

static void
write_file (struct broker *b, const char *path)
{
  AUTO_FREE char *text = metrics_render (b), *beside = NULL;
  bool failed;

  if (asprintf (&beside, "%s.tmp", path) < 0)
    abort ();
  failed = write_beside (beside, text) < 0 || rename (beside, path) < 0;
  if (failed && !b->metrics.failing)
    log_at (LOG_ERR, "metrics.failed", "path=%s error=\"%s\"", path, strerror (errno));
  if (!failed && b->metrics.failing)
    log_at (LOG_NOTICE, "metrics.written", "path=%s", path);
  b->metrics.failing = failed;
}

/* The timer always runs: a reload may name a file. */
static void
tick (void *ctx)
{
  struct broker *b = ctx;

  if (b->conf.broker.metrics_file)
    write_file (b, b->conf.broker.metrics_file);
  loop_after (b->loop, b->conf.broker.metrics_every_ms, tick, b);
}

void
metrics_start (struct broker *b)
{
  tick (b);
}
