/* ssh_output.c - what a node prints, one clean key=value line at a time */
#include "config.h"

#include <string.h>

#include "core/cleanup.h"
#include "join/ssh_output.h"

enum { MAX_GPUS = 32 };

/* How many bytes the UTF-8 sequence at p has, or 0: no overlong forms, no surrogates, nothing past
 * U+10FFFF. */
static size_t
sequence (const unsigned char *p)
{
  size_t n = p[0] < 0x80             ? 1
             : (p[0] & 0xe0) == 0xc0 ? 2
             : (p[0] & 0xf0) == 0xe0 ? 3
             : (p[0] & 0xf8) == 0xf0 ? 4
                                     : 0;

  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  if ((n == 2 && p[0] < 0xc2) || (n == 3 && p[0] == 0xe0 && p[1] < 0xa0) ||
      (n == 3 && p[0] == 0xed && p[1] > 0x9f) ||
      (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || p[0] > 0xf4 || (p[0] == 0xf4 && p[1] > 0x8f))))
    return 0;
  return n;
}

void
clean_text (char *text)
{
  for (unsigned char *p = (unsigned char *) text; *p;) {
    size_t n = sequence (p);

    if (n == 0 || (n == 1 && (*p < ' ' || *p == 0x7f))) {
      *p = '?';
      n = 1;
    }
    p += n;
  }
}

static bool
is_key (const char *s, size_t n)
{
  return n > 0 && n <= 32 && strspn (s, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

static void
finish_line (struct output *o)
{
  char *equals;

  o->line[o->n] = '\0';
  if (o->n && o->line[o->n - 1] == '\r')
    o->line[--o->n] = '\0';
  equals = strchr (o->line, '=');
  if (equals && is_key (o->line, (size_t) (equals - o->line))) {
    *equals = '\0';
    clean_text (equals + 1);
    o->on (o->arg, o->line, equals + 1);
  } else if (o->n)
    o->odd++;
  o->n = 0;
  o->cut = false;
}

void
output_feed (struct output *o, const char *bytes, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (bytes[i] == '\n')
      finish_line (o);
    else if (o->n < OUTPUT_LINE_MAX)
      o->line[o->n++] = bytes[i] ? bytes[i] : '?';
    else
      o->cut = true;
  }
}

static const char *const known[] = {
  "marker",
  "marker_code",
  "marker_step",
  "marker_hash",
  "lock",
  "boot_id",
  "cloud_init",
  "unit",
  "gpu_pci",
  "gpu_smi",
  "runtime",
  "dropin",
  "kubeconf",
  "node_name",
  "installed_by",
  "installed_as",
  "k0s_version",
  "arch",
  "now",
  "pending_reboot",
  "containerd_version",
  "user",
  "uid",
  "sudo",
  "os",
  "os_version",
  "os_name",
  "kernel",
  "disk_gib",
  "disk_free_gib",
  "mem_mib",
  "vcpus",
  "hostname",
  "machine_id",
  "virt",
  "init",
  "addresses",
  "mtu",
  "default_v4",
  "default_v6",
  "swap",
  "cgroup",
  "driver",
  "reboot_done",
  "clock_skew_ms",
  "restarts",
  "warning",
  "changed",
  "api_status",
  "data_free_gib",
  "fabric",
  "gpu_names",
  "gpu_mem_mib",

};

json_t *
facts_new (void)
{
  return json_pack ("{s:[]}", "gpus");
}

/* index, uuid, name, MiB, driver, as nvidia-smi lists them. */
static bool
add_gpu (json_t *gpus, const char *value)
{
  static const char *const names[] = { "index", "uuid", "name", "memory_mib", "driver" };
  json_t *gpu;

  if (json_array_size (gpus) >= MAX_GPUS)
    return false;
  gpu = json_object ();
  for (size_t i = 0; i < N_ELEMENTS (names) && *value; i++) {
    size_t n = strcspn (value, ",");

    if (strcmp (names[i], "index") == 0 || strcmp (names[i], "memory_mib") == 0)
      json_object_set_new (gpu, names[i], json_integer (strtol (value, NULL, 10)));
    else
      json_object_set_new (gpu, names[i], json_stringn (value, n));
    value += n + (value[n] == ',');
    value += strspn (value, " ");
  }
  return json_array_append_new (gpus, gpu) == 0;
}

bool
facts_add (json_t *facts, const char *key, const char *value)
{
  if (strcmp (key, "gpu") == 0)
    return add_gpu (json_object_get (facts, "gpus"), value);
  for (size_t i = 0; i < N_ELEMENTS (known); i++)
    if (strcmp (known[i], key) == 0)
      return json_object_get (facts, key) == NULL &&
             json_object_set_new (facts, key, json_string (value)) == 0;
  return false;
}
