/* network.c - where machines go: subnets of the VPC by zone, and the security group of their ports
 *
 * A group stands for one set of ports and has its name from it, so that whoever rents the same
 * ports again finds it.  Groups cost nothing and stay.
 */
#include "config.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { SUBNETS_FRESH_MS = 10 * 60 * 1000, TRIES = 4, PAUSE_MS = 300 };

/* ---- Subnets ---- */

static int32_t
vpc_find (const struct ctx *c, char vpc[static FIELD_MAX])
{
  AUTO_QUERY struct query q = query_new ("DescribeVpcs");
  json_auto_t *rows = NULL;
  const char *id;
  int32_t rc;

  if (c->s->vpc) {
    snprintf (vpc, FIELD_MAX, "%s", c->s->vpc);
    return GPUB_OK;
  }
  query_filter (&q, "is-default", "true");
  rc = ec2_pages (c, "find default VPC", &q, "vpcSet", &rows);
  if (rc != GPUB_OK)
    return rc;
  id = json_str (json_array_get (rows, 0), "vpcId", "");
  if (json_array_size (rows) && !id_valid (id, "vpc-"))
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "find default VPC: the answer has no id");
  if (!*id)
    return plug_error (c->err, GPUB_E_INVALID,
                       "%s has no default VPC: make one, or name another "
                       "with vpc",
                       c->region);
  snprintf (vpc, FIELD_MAX, "%s", id);
  return GPUB_OK;
}

static void
take_subnet (json_t *zones, const json_t *row)
{
  const char *zone = json_str (row, "availabilityZone", ""), *id = json_str (row, "subnetId", "");
  bool usual = strcmp (json_str (row, "defaultForAz", ""), "true") == 0;

  if (*zone && id_valid (id, "subnet-") && (usual || !json_object_get (zones, zone)))
    json_object_set_new (zones, zone, json_string (id));
}

int32_t
subnets_read (const struct ctx *c, json_t **subnet_of_zone, char vpc[static FIELD_MAX])
{
  AUTO_QUERY struct query q = query_new ("DescribeSubnets");
  json_auto_t *rows = NULL, *known = cache_get (c, "subnets", SUBNETS_FRESH_MS), *fresh = NULL;
  const json_t *row;
  size_t i;
  int32_t rc;

  if (known) {
    snprintf (vpc, FIELD_MAX, "%s", json_str (known, "vpc", ""));
    *subnet_of_zone = json_incref (json_object_get (known, "zones"));
    return GPUB_OK;
  }
  if ((rc = vpc_find (c, vpc)) != GPUB_OK)
    return rc;
  query_filter (&q, "vpc-id", vpc);
  rc = ec2_pages (c, "list subnets", &q, "subnetSet", &rows);
  if (rc != GPUB_OK)
    return rc;
  *subnet_of_zone = json_object ();
  json_array_foreach (rows, i, row)
    take_subnet (*subnet_of_zone, row);
  if (json_object_size (*subnet_of_zone) == 0)
    return plug_error (c->err, json_array_size (rows) ? GPUB_E_UNAVAILABLE : GPUB_E_INVALID,
                       "%s in %s has no subnet", vpc, c->region);
  fresh = json_pack ("{s:s, s:O}", "vpc", vpc, "zones", *subnet_of_zone);
  cache_put (c, "subnets", fresh);
  return GPUB_OK;
}

/* ---- The group ---- */

/* [{"proto", "from", "to", "cidr"}], port 22 first. */
static json_t *
rules_of (const struct ctx *c, const struct gpub_create *a)
{
  json_t *rules = json_array ();

  json_array_append_new (rules, json_pack ("{s:s, s:i, s:i, s:s}", "proto", "tcp", "from", 22, "to",
                                           22, "cidr", c->s->ssh_from));
  for (uint64_t i = 0; i < a->nports; i++) {
    const struct gpub_port *p = GPUB_AT (struct gpub_port, a->ports, a->ports_stride, i);

    json_array_append_new (rules, json_pack ("{s:s, s:i, s:i, s:s}", "proto", p->proto, "from",
                                             (int) p->from, "to", (int) p->to, "cidr",
                                             p->cidr ? p->cidr : "0.0.0.0/0"));
  }
  return rules;
}

static void
group_name (const struct ctx *c, const json_t *rules, char name[static FIELD_MAX])
{
  AUTO_FREE char *text = json_canonical (rules);
  unsigned char md[EVP_MAX_MD_SIZE];
  EVP_MD_CTX *x = EVP_MD_CTX_new ();

  EVP_DigestInit_ex (x, EVP_sha256 (), NULL);
  EVP_DigestUpdate (x, c->s->owner, strlen (c->s->owner));
  EVP_DigestUpdate (x, text, strlen (text));
  EVP_DigestFinal_ex (x, md, NULL);
  EVP_MD_CTX_free (x);
  snprintf (name, FIELD_MAX, "gpubroker-%02x%02x%02x%02x%02x%02x%02x%02x", md[0], md[1], md[2],
            md[3], md[4], md[5], md[6], md[7]);
}

static bool
has_range (const json_t *permission, const char *cidr)
{
  bool six = strchr (cidr, ':');
  const json_t *range;
  size_t i;

  json_array_foreach (json_object_get (permission, six ? "ipv6Ranges" : "ipRanges"), i, range)
    if (strcmp (json_str (range, six ? "cidrIpv6" : "cidrIp", ""), cidr) == 0)
      return true;
  return false;
}

static bool
has_rule (const json_t *group, const json_t *rule)
{
  const json_t *permission;
  size_t i;

  json_array_foreach (json_object_get (group, "ipPermissions"), i, permission)
    if (strcmp (json_str (permission, "ipProtocol", ""), json_str (rule, "proto", "")) == 0 &&
        (int64_t) num (permission, "fromPort") == json_i64 (rule, "from", -1) &&
        (int64_t) num (permission, "toPort") == json_i64 (rule, "to", -1) &&
        has_range (permission, json_str (rule, "cidr", "")))
      return true;
  return false;
}

/* *group stays NULL when there is none. */
static int32_t
group_find (const struct ctx *c, const char *vpc, const char *name, json_t **group)
{
  AUTO_QUERY struct query q = query_new ("DescribeSecurityGroups");
  json_auto_t *rows = NULL;
  int32_t rc;

  query_filter (&q, "group-name", name);
  query_filter (&q, "vpc-id", vpc);
  rc = ec2_pages (c, "find security group", &q, "securityGroupInfo", &rows);
  if (rc == GPUB_OK && id_valid (json_str (json_array_get (rows, 0), "groupId", ""), "sg-"))
    *group = json_incref (json_array_get (rows, 0));
  return rc;
}

static int32_t
group_make (const struct ctx *c, const char *vpc, const char *name)
{
  AUTO_QUERY struct query q = query_new ("CreateSecurityGroup");

  query_add (&q, "GroupName", name);
  query_add (&q, "GroupDescription", "ports of machines rented by gpubroker");
  query_add (&q, "VpcId", vpc);
  query_add (&q, "TagSpecification.1.ResourceType", "security-group");
  query_add (&q, "TagSpecification.1.Tag.1.Key", GPUB_TAG_OWNER);
  query_add (&q, "TagSpecification.1.Tag.1.Value", c->s->owner);
  return ec2_change (c, "make security group", &q, 0, NULL);
}

static int32_t
rule_add (const struct ctx *c, const char *id, const json_t *rule)
{
  AUTO_QUERY struct query q = query_new ("AuthorizeSecurityGroupIngress");
  const char *cidr = json_str (rule, "cidr", "");

  query_add (&q, "GroupId", id);
  query_add (&q, "IpPermissions.1.IpProtocol", json_str (rule, "proto", ""));
  query_int (&q, "IpPermissions.1.FromPort", (uint64_t) json_i64 (rule, "from", 0));
  query_int (&q, "IpPermissions.1.ToPort", (uint64_t) json_i64 (rule, "to", 0));
  query_add (&q,
             strchr (cidr, ':') ? "IpPermissions.1.Ipv6Ranges.1.CidrIpv6"
                                : "IpPermissions.1.IpRanges.1.CidrIp",
             cidr);
  return ec2_change (c, "open port", &q, 0, NULL);
}

/* May one more try help?  The name and the rule are unique: a second one changes nothing. */
static bool
again (const struct ctx *c, int32_t rc, int try)
{
  return (rc == GPUB_E_UNKNOWN || rc == GPUB_E_UNAVAILABLE || rc == GPUB_E_CONFLICT) &&
         try + 1 < TRIES && c->s->host->sleep (c->call, (uint32_t) PAUSE_MS << try) == GPUB_OK;
}

static int32_t
group_get (const struct ctx *c, const char *vpc, const char *name, json_t **group)
{
  int32_t rc = GPUB_OK;

  for (int try = 0; try < TRIES; try++) {
    int32_t found = group_find (c, vpc, name, group);

    if (found != GPUB_OK || *group)
      return found;
    rc = group_make (c, vpc, name);
    if (rc != GPUB_OK && !again (c, rc, try))
      return rc;
  }
  return rc != GPUB_OK ? rc
                       : plug_error (c->err, GPUB_E_UNAVAILABLE,
                                     "security group %s was made, but does not show yet", name);
}

static int32_t
rule_ensure (const struct ctx *c, const char *id, const json_t *rule)
{
  int32_t rc = GPUB_OK;

  for (int try = 0; try < TRIES; try++) {
    rc = rule_add (c, id, rule);
    if (rc == GPUB_E_CONFLICT) /* it is there */
      return GPUB_OK;
    if (rc == GPUB_OK || !again (c, rc, try))
      return rc;
  }
  return rc;
}

int32_t
group_ensure (const struct ctx *c, const struct gpub_create *a, const char *vpc,
              char id[static FIELD_MAX])
{
  json_auto_t *rules = rules_of (c, a), *group = NULL;
  char name[FIELD_MAX];
  const json_t *rule;
  size_t i;
  int32_t rc;

  group_name (c, rules, name);
  rc = group_get (c, vpc, name, &group);
  if (rc != GPUB_OK)
    return rc;
  snprintf (id, FIELD_MAX, "%s", json_str (group, "groupId", ""));
  json_array_foreach (rules, i, rule)
    if (!has_rule (group, rule) && (rc = rule_ensure (c, id, rule)) != GPUB_OK)
      return rc;
  return GPUB_OK;
}
