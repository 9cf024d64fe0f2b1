/* keys.c - the broker's public key in the account
 *
 * Shadeform also lists keys that it made itself together with their private half: no body of
 * /sshkeys may reach a log or an error text, and only id, name and public_key are ever read from
 * it.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/shadeform/shadeform.h"

/* The name follows from the key, so that two creates at once cannot add it twice: names are unique.
 */
static void
key_name (const char *public_key, char name[static 32])
{
  uint64_t hash = 14695981039346656037ull; /* FNV-1a */
  size_t len = 0;
  const char *p = ssh_key_identity (public_key, &len);

  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (unsigned char) p[i]) * 1099511628211ull;
  snprintf (name, 32, "gpubroker-%016llx", (unsigned long long) hash);
}

static int32_t
take_id (const struct ctx *c, const json_t *from, char id[static 64])
{
  const char *text = json_str (from, "id", "");

  if (!id_valid (text) || strlen (text) >= 64)
    return plug_error (c->err, GPUB_E_UNAVAILABLE, "SSH keys: the answer has no usable key id");
  strcpy (id, text);
  return GPUB_OK;
}

/* GPUB_OK with id "" when the account does not have it. */
static int32_t
look_up (const struct ctx *c, const char *public_key, char id[static 64])
{
  json_auto_t *body = NULL;
  json_t *key;
  size_t i;
  int32_t rc = api_list (c, "list SSH keys", "/sshkeys", "ssh_keys", &body);

  id[0] = '\0';
  if (rc != GPUB_OK)
    return rc;
  json_array_foreach (json_object_get (body, "ssh_keys"), i, key)
    if (ssh_key_same (json_str (key, "public_key", ""), public_key))
      return take_id (c, key, id);
  return GPUB_OK;
}

static int32_t
add (const struct ctx *c, const char *public_key, char id[static 64])
{
  char name[32];
  json_auto_t *body = NULL, *answer = NULL;
  int32_t rc;

  key_name (public_key, name);
  body = json_pack ("{s:s, s:s}", "name", name, "public_key", public_key);
  rc = api_post (c, "add SSH key", "/sshkeys/add", body, &answer);
  return rc == GPUB_OK ? take_id (c, answer, id) : rc;
}

/* An add that failed may have been done by us (the answer was lost) or by another call just now:
 * the list knows. Adding a key rents nothing, so its doubt never becomes the doubt of the create.
 */
int32_t
key_ensure (const struct ctx *c, const char *public_key, char id[static 64])
{
  struct gpub_error first;
  int32_t rc = look_up (c, public_key, id), again;

  if (rc != GPUB_OK || *id)
    return rc;
  rc = add (c, public_key, id);
  if (rc == GPUB_OK || rc == GPUB_E_AUTH || rc == GPUB_E_RATE_LIMITED || rc == GPUB_E_CANCELLED)
    return rc;
  first = *c->err;
  again = look_up (c, public_key, id);
  if (again == GPUB_OK && *id)
    return GPUB_OK;
  *c->err = first;
  return rc == GPUB_E_UNKNOWN ? GPUB_E_UNAVAILABLE : rc;
}
