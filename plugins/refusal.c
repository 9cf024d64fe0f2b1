/* refusal.c - what clouds say when they refuse, and the key that is never said back
 *
 * No cloud here documents its error codes well enough: words decide between stock and money.
 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "plugins/util.h"

/* A server that fails in the middle of a change may have made it; a name that is taken may have
 * been taken by this very change, sent before. */
static const struct {
  int from, to;
  int32_t read, change;
} statuses[] = {
  { 300, 399, GPUB_E_UNAVAILABLE, GPUB_E_UNAVAILABLE }, /* no API redirects: a proxy did */
  { 401, 401, GPUB_E_AUTH, GPUB_E_AUTH },
  { 402, 402, GPUB_E_QUOTA, GPUB_E_QUOTA },
  { 403, 403, GPUB_E_AUTH, GPUB_E_AUTH },
  { 404, 404, GPUB_E_NOT_FOUND, GPUB_E_NOT_FOUND },
  { 408, 408, GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  { 409, 409, GPUB_E_UNAVAILABLE, GPUB_E_CONFLICT },
  { 429, 429, GPUB_E_RATE_LIMITED, GPUB_E_RATE_LIMITED },
  { 400, 499, GPUB_E_INVALID, GPUB_E_INVALID },
  { 500, 599, GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
};

/* The words of other statuses change nothing. */
static const int about_wish[] = { 400, 402, 403, 405, 409, 422 };

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
plug_kind_of_status (int status, bool change)
{
  for (size_t i = 0; i < N_ELEMENTS (statuses); i++)
    if (status >= statuses[i].from && status <= statuses[i].to)
      return change ? statuses[i].change : statuses[i].read;
  return change ? GPUB_E_UNKNOWN : GPUB_E_UNAVAILABLE;
}

int32_t
plug_kind_of_refusal (int status, bool change, const char *code, const char *text)
{
  int32_t kind = GPUB_OK;

  for (size_t i = 0; change && i < N_ELEMENTS (about_wish); i++)
    if (status == about_wish[i]) {
      kind = plug_kind_of_text (code);
      if (kind == GPUB_OK)
        kind = plug_kind_of_text (text);
    }
  return kind != GPUB_OK ? kind : plug_kind_of_status (status, change);
}

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
plug_kind_of_removal (int32_t rc)
{
  switch (rc) {
  case GPUB_E_NOT_FOUND:
    return GPUB_OK;
  case GPUB_E_INVALID:
  case GPUB_E_CONFLICT:
  case GPUB_E_CAPACITY:
  case GPUB_E_QUOTA:
    return GPUB_E_UNAVAILABLE;
  default:
    return rc;
  }
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
