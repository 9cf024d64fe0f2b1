/* refusal.c - what clouds say when they refuse, and the key that is never said back
 *
 * No cloud here documents its error codes well enough: words decide between stock and money.
 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "plugins/util.h"

/* Looked for in lower case; capacity first, since "insufficient capacity" is no matter of money. */
static const struct {
  const char *word;
  int32_t kind;
} words[] = {
  { "out of stock", GPUB_E_CAPACITY },
  { "out_of_stock", GPUB_E_CAPACITY },
  { "capacity", GPUB_E_CAPACITY },
  { "sold out", GPUB_E_CAPACITY },
  { "not available", GPUB_E_CAPACITY },
  { "no valid host", GPUB_E_CAPACITY },
  { "insufficient", GPUB_E_QUOTA },
  { "balance", GPUB_E_QUOTA },
  { "funds", GPUB_E_QUOTA },
  { "wallet", GPUB_E_QUOTA },
  { "payment", GPUB_E_QUOTA },
  { "credit", GPUB_E_QUOTA },
  { "quota", GPUB_E_QUOTA },
  { "limit reached", GPUB_E_QUOTA },
  { "limit exceeded", GPUB_E_QUOTA },
};

int32_t
plug_kind_of_text (const char *text)
{
  char lower[256];
  size_t n = 0;

  for (; n < sizeof lower - 1 && text[n]; n++)
    lower[n] = (char) tolower ((unsigned char) text[n]);
  lower[n] = '\0';
  for (size_t i = 0; i < N_ELEMENTS (words); i++)
    if (strstr (lower, words[i].word))
      return words[i].kind;
  return GPUB_OK;
}

int32_t
plug_key (const struct gpub_host *host, struct gpub_call *call, const char *option,
          char key[static PLUG_KEY_MAX], size_t *len, struct gpub_error *err)
{
  const void *bytes = NULL;
  uint64_t n = 0;

  if (host->secret (call, option, &bytes, &n) != GPUB_OK)
    n = 0;
  while (n && isspace (((const unsigned char *) bytes)[n - 1]))
    n--;
  for (uint64_t i = 0; i < n; i++)
    if (!isgraph (((const unsigned char *) bytes)[i]))
      return plug_error (err, GPUB_E_AUTH, "%s has a character that no key has, at byte %llu",
                         option, (unsigned long long) i + 1);
  if (n == 0 || n >= PLUG_KEY_MAX)
    return plug_error (err, GPUB_E_AUTH, "%s is %s", option, n ? "too long" : "missing");
  memcpy (key, bytes, n);
  key[n] = '\0';
  *len = n;
  return GPUB_OK;
}
