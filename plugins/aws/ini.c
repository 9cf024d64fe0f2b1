/* ini.c - the shared files of AWS's tools: sections, key = value, comments
 *
 * Indented lines belong to a nested setting (s3 = ...) and are passed over.  Of a key that stands
 * twice the last one counts, as it does for the tools.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

struct span {
  const char *at;
  size_t len;
};

static struct span
trimmed (const char *at, const char *end)
{
  while (at < end && isspace ((unsigned char) *at))
    at++;
  while (end > at && isspace ((unsigned char) end[-1]))
    end--;
  return (struct span){ at, (size_t) (end - at) };
}

static bool
same (struct span s, const char *text)
{
  return s.len == strlen (text) && memcmp (s.at, text, s.len) == 0;
}

/* " ; comment" ends a value, a bare ; or # inside one does not. */
static struct span
value_of (const char *at, const char *end)
{
  for (const char *p = at; p + 1 < end; p++)
    if (isspace ((unsigned char) p[0]) && (p[1] == ';' || p[1] == '#')) {
      end = p;
      break;
    }
  return trimmed (at, end);
}

bool
ini_get (const char *text, const char *section, const char *key, char *out, size_t size)
{
  bool inside = false, found = false;

  for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
    const char *equals, *close;

    end = line + strcspn (line, "\n");
    if (*line == '[') {
      close = memchr (line, ']', (size_t) (end - line));
      inside = close && same (trimmed (line + 1, close), section);
      continue;
    }
    equals = memchr (line, '=', (size_t) (end - line));
    if (!inside || !equals || isspace ((unsigned char) *line) || *line == '#' || *line == ';' ||
        !same (trimmed (line, equals), key))
      continue;
    struct span v = value_of (equals + 1, end);

    if (v.len >= size)
      return false;
    memcpy (out, v.at, v.len);
    out[v.len] = '\0';
    found = true;
  }
  return found;
}
