/* seat.c - what is rented, as text: project|platform|preset|market, and what names say of hardware
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

bool
field_take (char *out, size_t size, const char *text)
{
  size_t n = text ? strlen (text) : 0;

  for (size_t i = 0; i < n; i++)
    if (text[i] <= ' ' || text[i] > '~' || text[i] == '|')
      return false;
  if (n == 0 || n >= size)
    return false;
  memcpy (out, text, n + 1);
  return true;
}

bool
seat_parse (const char *ref, struct seat *seat)
{
  char *const fields[] = { seat->project, seat->platform, seat->preset };
  char part[FIELD_MAX];

  for (size_t i = 0; i < N_ELEMENTS (fields); i++) {
    size_t n = strcspn (ref, "|");

    if (n >= sizeof part || ref[n] != '|')
      return false;
    memcpy (part, ref, n);
    part[n] = '\0';
    if (!field_take (fields[i], FIELD_MAX, part))
      return false;
    ref += n + 1;
  }
  seat->spot = strcmp (ref, "preemptible") == 0;
  return seat->spot || strcmp (ref, "on-demand") == 0;
}

void
seat_print (const struct seat *seat, char ref[static REF_MAX])
{
  snprintf (ref, REF_MAX, "%s|%s|%s|%s", seat->project, seat->platform, seat->preset,
            seat->spot ? "preemptible" : "on-demand");
}

/* ---- Platforms ---- */

/* Where the platform's own word would be taken for another card. */
static const struct {
  const char *platform, *gpu;
} odd_names[] = { { "rtx6000", "RTX PRO 6000" }, { "rtx5000", "RTX PRO 5000" } };

/* "gpu-l40s-a" and "-d" are one card in two hosts: a last part of one letter goes. */
bool
platform_gpu (const char *platform, char gpu[static FIELD_MAX])
{
  char word[FIELD_MAX];
  size_t n;

  if (strncmp (platform, "gpu-", 4) != 0 || !platform[4])
    return false;
  snprintf (word, sizeof word, "%s", platform + 4);
  n = strlen (word);
  if (n > 2 && word[n - 2] == '-')
    word[n - 2] = '\0';
  for (size_t i = 0; i < N_ELEMENTS (odd_names); i++)
    if (strcmp (word, odd_names[i].platform) == 0) {
      snprintf (gpu, FIELD_MAX, "%s", odd_names[i].gpu);
      return true;
    }
  for (char *p = word; *p; p++)
    *p = *p == '-' ? ' ' : (char) (*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
  snprintf (gpu, FIELD_MAX, "%s", word);
  return true;
}

/* Grace is the one ARM host there is. */
const char *
platform_arch (const char *platform)
{
  return strncmp (platform, "gpu-gb", 6) == 0 || strncmp (platform, "gpu-gh", 6) == 0 ? "aarch64"
                                                                                      : "x86_64";
}

const char *
platform_link (const char *platform)
{
  if (strncmp (platform, "gpu-", 4) != 0)
    return NULL;
  return strstr (platform, "-sxm") || strncmp (platform, "gpu-gb", 6) == 0 ? "sxm" : "pcie";
}

/* A region that opens tomorrow has no country here, and is rented all the same. */
const char *
region_country (const char *region)
{
  static const struct {
    const char *region, *country;
  } table[] = { { "eu-north1", "FI" },
                { "eu-west1", "FR" },
                { "us-central1", "US" },
                { "me-west1", "IL" },
                { "uk-south1", "GB" } };

  for (size_t i = 0; i < N_ELEMENTS (table); i++)
    if (strcmp (region, table[i].region) == 0)
      return table[i].country;
  return NULL;
}
