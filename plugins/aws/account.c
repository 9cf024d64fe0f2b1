/* account.c - whose keys these are */
#include "config.h"

#include <stdio.h>

#include "plugins/aws/aws.h"

int32_t
account_read (const struct ctx *c, char account[static ACCOUNT_MAX], char *arn, size_t size)
{
  AUTO_QUERY struct query q = query_new ("GetCallerIdentity");
  json_auto_t *body = NULL;
  const json_t *who;
  int32_t rc = sts_read (c, "check credentials", &q, &body);

  who = json_object_get (body, "GetCallerIdentityResult");
  snprintf (account, ACCOUNT_MAX, "%s", json_str (who, "Account", ""));
  if (arn)
    snprintf (arn, size, "%s", json_str (who, "Arn", ""));
  if (rc == GPUB_OK && !*account)
    return plug_error (c->err, GPUB_E_UNAVAILABLE,
                       "check credentials: the answer names no account");
  return rc == GPUB_E_NOT_FOUND ? GPUB_E_UNAVAILABLE : rc;
}
