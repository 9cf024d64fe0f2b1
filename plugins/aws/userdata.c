/* userdata.c - what cloud-init gets: the keys, the kill switch, and the caller's own part
 *
 * The kill switch: EC2 ends a machine that shuts itself down, and the machine does so when the time
 * in its tag gpubroker-not-after has come.  The tag is read each minute through the metadata
 * service, so that an extended lease moves it; without an answer the last known time holds.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

static const char hook[] =
    "#!/bin/sh\n"
    "d=/var/lib/gpubroker u=/run/systemd/system\n"
    "mkdir -p $d $u\n"
    "[ -s $d/not-after ] || echo %lld >$d/not-after\n"
    "cat >$d/expire <<'END'\n"
    "d=/var/lib/gpubroker m=http://169.254.169.254/latest\n"
    "t=$(curl -sf -m 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $m/api/token) &&\n"
    "n=$(curl -sf -m 5 -H \"X-aws-ec2-metadata-token: $t\" "
    "$m/meta-data/tags/instance/" TAG_NOT_AFTER ") &&\n"
    "case $n in ''|*[!0-9]*) ;; *) echo $n >$d/new && mv $d/new $d/not-after ;; esac\n"
    "[ $(date +%%s) -lt $(cat $d/not-after) ] || systemctl poweroff --no-block\n"
    "END\n"
    "printf '[Service]\\nType=oneshot\\nExecStart=/bin/sh '$d'/expire\\n' "
    ">$u/gpubroker-expire.service\n"
    "printf '[Timer]\\nOnActiveSec=60\\nOnUnitActiveSec=60\\n' >$u/gpubroker-expire.timer\n"
    "systemctl daemon-reload\n"
    "systemctl start --no-block gpubroker-expire.timer\n";

static void
put_switch (FILE *f, const struct gpub_create *a)
{
  fprintf (f, "Content-Type: text/cloud-boothook\n\n");
  fprintf (f, hook, (long long) (a->not_after_ms / 1000));
}

/* After the caller's part, and merged into it: neither list of keys replaces the other. */
static void
put_keys (FILE *f, const struct gpub_create *a)
{
  fprintf (f, "Content-Type: text/cloud-config\n"
              "Merge-Type: list(append)+dict(no_replace,recurse_list)+str()\n\n"
              "#cloud-config\nssh_authorized_keys:\n");
  for (uint64_t i = 0; i < a->nssh_public_keys; i++) {
    json_auto_t *key = json_string (a->ssh_public_keys[i]);
    AUTO_FREE char *quoted = key ? json_dumps (key, JSON_ENCODE_ANY) : NULL;

    if (quoted)
      fprintf (f, "  - %s\n", quoted);
  }
}

static bool
plain (const unsigned char *bytes, size_t len)
{
  for (size_t i = 0; i < len; i++)
    if ((bytes[i] < ' ' && !strchr ("\t\r\n", bytes[i])) || bytes[i] > '~' || bytes[i] == '\0')
      return false;
  return true;
}

static bool
begins (const struct gpub_create *a, const char *text)
{
  size_t n = strlen (text);

  return a->user_data_len >= n && strncasecmp (a->user_data, text, n) == 0;
}

static void
put_base64 (FILE *f, const struct gpub_create *a)
{
  AUTO_FREE char *text = base64_encode (a->user_data, a->user_data_len);

  fprintf (f, "Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n");
  for (const char *p = text; *p; p += strnlen (p, 76))
    fprintf (f, "%.76s\n", p);
}

/* cloud-init looks at the first line of text/plain; a MIME document brings its own headers. */
static void
put_own (FILE *f, const struct gpub_create *a)
{
  if (!plain (a->user_data, a->user_data_len)) {
    put_base64 (f, a);
    return;
  }
  if (!begins (a, "MIME-Version:") && !begins (a, "Content-Type:"))
    fprintf (f, "Content-Type: text/plain\n\n");
  fwrite (a->user_data, 1, a->user_data_len, f);
  fprintf (f, "\n");
}

static void
put_all (FILE *f, const struct gpub_create *a, const char *edge)
{
  fprintf (f, "Content-Type: multipart/mixed; boundary=\"%s\"\nMIME-Version: 1.0\n\n", edge);
  if (a->not_after_ms) {
    fprintf (f, "--%s\n", edge);
    put_switch (f, a);
  }
  if (a->user_data_kind != GPUB_DATA_NONE && a->user_data_len > 0) {
    fprintf (f, "--%s\n", edge);
    put_own (f, a);
  }
  fprintf (f, "--%s\n", edge);
  put_keys (f, a);
  fprintf (f, "--%s--\n", edge);
}

int32_t
user_data_build (const struct ctx *c, const struct gpub_create *a, char **out, size_t *len)
{
  char edge[FIELD_MAX];
  FILE *f = open_memstream (out, len);

  if (!f)
    abort ();
  snprintf (edge, sizeof edge, "gpubroker-%.40s", a->token ? a->token : "");
  put_all (f, a, edge);
  if (fclose (f))
    abort ();
  if (a->user_data_len && memmem (a->user_data, a->user_data_len, edge, strlen (edge)))
    return plug_error (c->err, GPUB_E_INVALID, "user data holds the mark of this very attempt");
  if (*len > USER_DATA_RAW_MAX)
    return plug_error (
        c->err, GPUB_E_INVALID,
        "user data of %llu bytes: with keys and kill switch it has %zu, and EC2 takes "
        "%d",
        (unsigned long long) a->user_data_len, *len, USER_DATA_RAW_MAX);
  return GPUB_OK;
}
