/* progress.c - what running operations do, on standard error */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/format.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "core/json.h"

void
progress_init (struct progress *p, bool tty, bool quiet)
{
  *p = (struct progress){ .tty = tty, .quiet = quiet, .started_ms = clock_boot_ms () };
}

/* A line longer than the terminal would wrap, and then \r no longer finds its start. */
static int
columns (void)
{
  struct winsize w;

  return ioctl (STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col - 1 : 79;
}

static void
draw (struct progress *p)
{
  char span[FMT], line[400];

  fmt_span (span, clock_boot_ms () - p->started_ms);
  snprintf (line, sizeof line, "%8s  %s", span, p->shown);
  if (p->tty)
    fprintf (stderr, "\r\033[K%.*s", columns (), line);
  else
    fprintf (stderr, "%s\n", line);
  p->open = p->tty;
}

/* The step as words: "l42 booting: waiting for an address (try 2, $1.95/h)". */
static void
describe (char *buf, size_t size, const json_t *j)
{
  const char *text = json_str (j, "text", "");
  int64_t attempt = json_i64 (j, "attempt", 1);
  char price[FMT], try[FMT] = "";

  if (!*text) /* a step that has just begun */
    text = json_str (j, "step", "");
  fmt_money_of (price, j, "price_udollar");
  if (attempt > 1)
    snprintf (try, sizeof try, " (try %lld)", (long long) attempt);
  snprintf (buf, size, "%s %s%s%.200s%s%s%s", json_str (j, "lease", ""), json_str (j, "state", ""),
            *text ? ": " : "", text, try, *price ? "  " : "", price);
  if (*price && strlen (buf) + 3 < size)
    strcat (buf, "/h");
}

void
progress_show (struct progress *p, const json_t *progress)
{
  char line[sizeof p->shown];

  if (p->quiet)
    return;
  describe (line, sizeof line, progress);
  if (strcmp (line, p->shown) == 0)
    return;
  progress_end (p);
  strcpy (p->shown, line);
  draw (p);
}

void
progress_tick (struct progress *p)
{
  if (p->open)
    draw (p);
}

void
progress_end (struct progress *p)
{
  if (p->open)
    fputc ('\n', stderr);
  p->open = false;
}
