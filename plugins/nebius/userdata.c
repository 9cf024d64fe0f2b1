/* userdata.c - cloud-init data that lets the keys in
 *
 * The cloud keeps no SSH keys: they go in the user data, beside the caller's own, as parts of one
 * MIME archive.  Ours comes last and appends, so that it replaces nothing of the caller's.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

static const struct {
  const char *begins, *type;
} kinds[] = {
  { "#cloud-config", "text/cloud-config" },
  { "#!", "text/x-shellscript" },
  { "#cloud-boothook", "text/cloud-boothook" },
  { "#include", "text/x-include-url" },
  { "## template:", "text/jinja2" },
  { "Content-Type:", NULL },
  { "MIME-Version:", NULL }, /* an archive of its own, with its header */
};

/* A JSON string is a YAML string. */
static bool
put_keys (FILE *f, const struct gpub_create *a)
{
  fputs ("ssh_authorized_keys:\n", f);
  for (uint64_t i = 0; i < a->nssh_public_keys; i++) {
    json_auto_t *line =
        json_stringn (a->ssh_public_keys[i], strcspn (a->ssh_public_keys[i], "\r\n"));
    AUTO_FREE char *text = json_dumps (line, JSON_ENCODE_ANY);

    if (!text)
      return false;
    fprintf (f, "  - %s\n", text);
  }
  return true;
}

static bool
put_own (FILE *f, const struct gpub_create *a)
{
  fputs ("Content-Type: text/cloud-config; charset=\"utf-8\"\nMIME-Version: 1.0\n\n"
         "#cloud-config\n"
         "merge_how:\n"
         "  - {name: list, settings: [append]}\n"
         "  - {name: dict, settings: [no_replace, recurse_list]}\n",
         f);
  return put_keys (f, a);
}

static bool
put_theirs (FILE *f, const char *text, const char **why)
{
  for (size_t i = 0; i < N_ELEMENTS (kinds); i++)
    if (strncmp (text, kinds[i].begins, strlen (kinds[i].begins)) == 0) {
      if (kinds[i].type)
        fprintf (f, "Content-Type: %s; charset=\"utf-8\"\nMIME-Version: 1.0\n\n", kinds[i].type);
      fputs (text, f);
      return true;
    }
  *why = "its first line is of no kind that cloud-init knows";
  return false;
}

static bool
put_archive (FILE *f, const struct gpub_create *a, const char *text, const char **why)
{
  char boundary[40];
  int n = 0;

  do
    snprintf (boundary, sizeof boundary, "gpubroker-%d", n++);
  while (strstr (text, boundary));
  fprintf (f, "Content-Type: multipart/mixed; boundary=\"%s\"\nMIME-Version: 1.0\n\n--%s\n",
           boundary, boundary);
  if (!put_theirs (f, text, why))
    return false;
  fprintf (f, "\n--%s\n", boundary);
  if (!put_own (f, a))
    return false;
  fprintf (f, "\n--%s--\n", boundary);
  return true;
}

/* The field is text: neither a zero byte nor what is not UTF-8 would arrive. */
static char *
text_of (const struct gpub_create *a)
{
  json_auto_t *j = NULL;

  if (a->user_data_len == 0 || a->user_data_kind == GPUB_DATA_NONE)
    return strdup ("");
  if (memchr (a->user_data, '\0', a->user_data_len))
    return NULL;
  j = json_stringn (a->user_data, a->user_data_len);
  return j ? strdup (json_string_value (j)) : NULL;
}

static bool
put_all (FILE *f, const struct gpub_create *a, const char *text, const char **why)
{
  if (*text)
    return put_archive (f, a, text, why);
  fputs ("#cloud-config\n", f);
  return put_keys (f, a);
}

char *
user_data_make (const struct gpub_create *a, const char **why)
{
  AUTO_FREE char *text = text_of (a), *out = NULL;
  size_t len = 0;
  FILE *f;
  bool good;

  *why = "it is no UTF-8 text";
  if (!text || !(f = open_memstream (&out, &len)))
    return NULL;
  *why = "a key is no UTF-8 text";
  good = put_all (f, a, text, why);
  if (fclose (f) != 0 || !good)
    return NULL;
  *why = "it is longer than the cloud takes";
  return len <= USER_DATA_MAX ? STEAL (out) : NULL;
}
