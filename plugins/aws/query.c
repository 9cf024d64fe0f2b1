/* query.c - the body of a request in AWS's query protocol */
#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

static void
append (struct query *q, const char *text, size_t len)
{
  if (q->len + len + 1 > q->cap) {
    q->cap = 2 * (q->len + len + 1);
    q->text = realloc (q->text, q->cap);
    if (!q->text)
      abort ();
  }
  memcpy (q->text + q->len, text, len);
  q->len += len;
  q->text[q->len] = '\0';
}

/* A space is "+", as AWS's own clients write it: some verifiers write the form anew, and check
 * that.
 */
static void
append_escaped (struct query *q, const char *text)
{
  for (; *text; text++) {
    unsigned char c = (unsigned char) *text;
    char out[4] = "+";

    if (c != ' ')
      snprintf (out, sizeof out, isalnum (c) || strchr ("-._~", c) ? "%c" : "%%%02X", c);
    append (q, out, strlen (out));
  }
}

struct query
query_new (const char *action)
{
  struct query q = { .action = action };

  append (&q, "Action=", 7);
  append_escaped (&q, action);
  return q;
}

void
query_done (struct query *q)
{
  if (q->text)
    explicit_bzero (q->text, q->len);
  free (q->text);
}

void
query_add (struct query *q, const char *name, const char *value)
{
  append (q, "&", 1);
  append (q, name, strlen (name));
  append (q, "=", 1);
  append_escaped (q, value);
}

void
query_addf (struct query *q, const char *value, const char *fmt, ...)
{
  char name[128];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (name, sizeof name, fmt, ap);
  va_end (ap);
  query_add (q, name, value);
}

void
query_int (struct query *q, const char *name, uint64_t value)
{
  char text[24];

  snprintf (text, sizeof text, "%llu", (unsigned long long) value);
  query_add (q, name, text);
}

void
query_filter (struct query *q, const char *name, const char *value)
{
  query_addf (q, name, "Filter.%d.Name", ++q->filters);
  q->values = 0;
  query_or (q, value);
}

void
query_or (struct query *q, const char *value)
{
  query_addf (q, value, "Filter.%d.Value.%d", q->filters, ++q->values);
}
