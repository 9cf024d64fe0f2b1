/* tap.h - just enough of TAP
 *
 *   ok (x == 3, "x is %d", x);      is_str (got, "want", "name");      return done ();
 */
#ifndef GPUB_TAP_H
#define GPUB_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int tap_n, tap_bad;

__attribute__ ((__format__ (__printf__, 2, 3), __unused__)) static int
ok (int pass, const char *fmt, ...)
{
  va_list ap;

  tap_bad += !pass;
  printf ("%sok %d - ", pass ? "" : "not ", ++tap_n);
  va_start (ap, fmt);
  vprintf (fmt, ap);
  va_end (ap);
  putchar ('\n');
  fflush (stdout);
  return pass;
}

__attribute__ ((__unused__)) static int
is_str (const char *got, const char *want, const char *name)
{
  if (ok (got && strcmp (got, want) == 0, "%s", name))
    return 1;
  printf ("# got:  %s\n# want: %s\n", got ? got : "(null)", want);
  return 0;
}

__attribute__ ((__unused__)) static int
is_num (int64_t got, int64_t want, const char *name)
{
  if (ok (got == want, "%s", name))
    return 1;
  printf ("# got:  %" PRId64 "\n# want: %" PRId64 "\n", got, want);
  return 0;
}

__attribute__ ((__unused__)) static int
done (void)
{
  printf ("1..%d\n", tap_n);
  return tap_bad != 0;
}

#endif
