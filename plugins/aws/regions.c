/* regions.c - which regions, and in which country each is */
#include "config.h"

#include <string.h>

#include "plugins/aws/aws.h"

enum { REGIONS_FRESH_MS = 60 * 60 * 1000 };

static const struct {
  const char *region, *country;
} countries[] = {
  { "us-", "US" },
  { "ca-", "CA" },
  { "mx-", "MX" },
  { "sa-east-1", "BR" },
  { "eu-west-1", "IE" },
  { "eu-west-2", "GB" },
  { "eu-west-3", "FR" },
  { "eu-central-1", "DE" },
  { "eu-central-2", "CH" },
  { "eu-north-1", "SE" },
  { "eu-south-1", "IT" },
  { "eu-south-2", "ES" },
  { "ap-northeast-1", "JP" },
  { "ap-northeast-2", "KR" },
  { "ap-northeast-3", "JP" },
  { "ap-south-", "IN" },
  { "ap-southeast-1", "SG" },
  { "ap-southeast-2", "AU" },
  { "ap-southeast-3", "ID" },
  { "ap-southeast-4", "AU" },
  { "ap-southeast-5", "MY" },
  { "ap-southeast-7", "TH" },
  { "ap-east-1", "HK" },
  { "ap-east-2", "TW" },
  { "me-south-1", "BH" },
  { "me-central-1", "AE" },
  { "il-central-1", "IL" },
  { "af-south-1", "ZA" },
  { "cn-", "CN" },
};

const char *
region_country (const char *name)
{
  for (size_t i = 0; i < N_ELEMENTS (countries); i++)
    if (strncmp (name, countries[i].region, strlen (countries[i].region)) == 0)
      return countries[i].country;
  return NULL;
}

/* It becomes part of a host name. */
bool
region_valid (const char *name)
{
  size_t n = strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-");

  return n > 3 && n < 32 && name[n] == '\0';
}

/* Without configured ones: all that the account has switched on, asked for in the first that is
 * always on. */
int32_t
regions_read (const struct ctx *c, json_t **names)
{
  const struct ctx first = { c->s, c->call, c->err, "us-east-1", c->read_ms };
  AUTO_QUERY struct query q = query_new ("DescribeRegions");
  json_auto_t *rows = NULL;
  const json_t *row;
  size_t i;
  int32_t rc;

  if (json_array_size (c->s->regions)) {
    *names = json_incref (c->s->regions);
    return GPUB_OK;
  }
  if ((*names = cache_get (&first, "regions", REGIONS_FRESH_MS)))
    return GPUB_OK;
  rc = ec2_pages (&first, "list regions", &q, "regionInfo", &rows);
  if (rc != GPUB_OK)
    return rc;
  *names = json_array ();
  json_array_foreach (rows, i, row) {
    const char *name = json_str (row, "regionName", "");

    if (region_valid (name) && strcmp (json_str (row, "optInStatus", ""), "not-opted-in") != 0)
      json_array_append_new (*names, json_string (name));
  }
  if (json_array_size (*names) == 0)
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "list regions: none of %zu rows has a name",
                       json_array_size (rows));
  cache_put (&first, "regions", *names);
  return GPUB_OK;
}
