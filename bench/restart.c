/* restart.c - from exec of gpubrokerd to its first answer, with 10,000 leases in the books and with
 * none
 *
 * Every lease is ready and has its machine, as after a day of a large installation; the provider is
 * `static`, which calls nobody.  Run in the build folder.  Prints milliseconds, the median of five.
 */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bus/gpubroker/client.h"
#include "core/json.h"
#include "core/store.h"

enum { LEASES = 10000, RUNS = 5 };

static char folder[] = "/tmp/gpubroker-bench-XXXXXX";

static double
ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static void
die (const char *why)
{
  fprintf (stderr, "bench-restart: %s\n", why);
  exit (1);
}

/* What the books hold of a lease with an offer of usual size. */
static void
put_lease (struct store *s, int64_t number)
{
  struct lease *l = lease_new (number);
  struct attempt *a = attempt_new (l);
  struct op *o = op_new (number);
  char text[64];

  snprintf (text, sizeof text, "gpub-0000-l%lld-1", (long long) number);
  set_str (&l->owner, "uid:1000");
  set_str (&l->cluster, "none");
  l->state = LEASE_READY;
  l->request = json_pack ("{s:{s:[{s:s, s:i, s:i}], s:s}, s:i}", "filter", "gpu", "model", "H100",
                          "min", 1, "max", 1, "market", "on-demand", "ttl_ms", 0);
  l->created_ms = l->ready_ms = l->state_ms = 1796000000000;
  a->state = ATTEMPT_CREATED;
  a->wanted = a->billed = true;
  set_str (&a->provider, "lab");
  set_str (&a->token, "0123456789abcdef0123456789abcdef");
  set_str (&a->name, text);
  set_str (&a->machine.id, text);
  set_str (&a->machine.address, "10.0.0.5");
  set_str (&a->machine.hostkey,
           "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPKkAbcDefGhiJklMnoPqrStuVwxYz");
  set_str (&a->machine.state, "running");
  a->price_udollar = 2050000;
  a->offer = json_pack (
      "{s:s, s:s, s:s, s:s, s:s, s:{s:i, s:s, s:s, s:s, s:i, s:s}, s:i, s:i, s:i, s:s, s:s, s:s}",
      "id", "0aff6121e1d1", "provider", "lab", "offer_ref", "h100", "region", "eu-north1",
      "instance_type", "gpu_h100_sxm", "gpu", "count", 1, "model", "H100-80GB-SXM", "family",
      "H100", "raw", "NVIDIA H100 80GB HBM3", "vram_gib", 80, "form", "sxm", "vcpus", 26, "ram_gib",
      200, "disk_gib", 500, "kind", "vm", "market", "on-demand", "arch", "x86_64");
  set_str (&o->verb, "rent");
  set_str (&o->owner, "uid:1000");
  set_str (&o->key, text);
  o->lease = number;
  o->state = OP_DONE;
  store_put_lease (s, l);
  store_put_attempt (s, l, a);
  store_put_op (s, o);
  for (int i = 0; i < 8; i++) {
    AUTO_JSON json_t *event = json_pack ("{s:s, s:s}", "lease", l->id, "what", "joining");

    store_put_event (s, 1796000000000, number, "lease.joining", event);
    store_put_log (s, number, 1796000000000, "probe", "Ubuntu 22.04, 1 GPU, driver 570.86.15");
  }
  op_free (o);
  lease_free (l);
}

static void
fill (const char *state, int n)
{
  struct err e = ERR_INIT;
  struct store *s = store_open (state, &e);

  for (int i = 1; s && i <= n; i++)
    put_lease (s, i);
  if (!s || store_commit (s, &e) < 0)
    die (e.text);
  store_close (s);
}

static void
configure (const char *at, const char *config)
{
  FILE *f = fopen (config, "w");

  if (!f)
    die (config);
  fprintf (
      f,
      "broker: { name = \"bench\"; state_dir = \"%s/state\"; run_dir = \"%s/run\"; log_level = "
      "\"error\"; };\nbus: { requests = [ \"ipc://%s/run/bus\" ]; uids = ( { uid = %u; rights = "
      "\"admin\"; } ); };\nproviders: ( { name = \"lab\"; plugin = \"static\"; hosts = ( { address "
      "= \"10.0.0.5\"; gpu = \"L40S\"; gpus = 1; price = 0.4; } ); } );\n",
      at, at, at, (unsigned) geteuid ());
  fclose (f);
}

static pid_t
start (const char *config)
{
  pid_t pid = fork ();

  if (pid)
    return pid;
  setenv ("GPUB_LIBEXECDIR", ".", 1);
  setenv ("GPUB_PROVIDER_PATH", ".libs", 1);
  execl ("./gpubrokerd", "gpubrokerd", "--config", config, (char *) NULL);
  _exit (127);
}

static double
until_answer (const char *at, const char *config)
{
  double begun = ms (), took;
  char endpoint[160];
  struct gpubc *c;
  struct gpubc_reply r = { .size = sizeof r };
  pid_t pid = start (config);

  snprintf (endpoint, sizeof endpoint, "ipc://%s/run/bus", at);
  while (access (endpoint + strlen ("ipc://"), F_OK) < 0 && ms () < begun + 60000)
    usleep (500);
  c = gpubc_new (endpoint);
  if (gpubc_call (c, "ping", "{}", 60000, NULL, NULL, &r) != GPUBC_FINAL)
    die (gpubc_why (c));
  took = ms () - begun;
  gpubc_free (c);
  kill (pid, SIGTERM);
  waitpid (pid, NULL, 0);
  return took;
}

static int
by_size (const void *x, const void *y)
{
  double a = *(const double *) x, b = *(const double *) y;

  return a < b ? -1 : a > b;
}

static double
measure (int leases)
{
  char at[128], path[160], config[160];
  double took[RUNS];

  snprintf (at, sizeof at, "%s/%d", folder, leases);
  mkdir (at, 0755);
  snprintf (path, sizeof path, "%s/state", at);
  mkdir (path, 0700);
  fill (path, leases);
  snprintf (path, sizeof path, "%s/run", at);
  mkdir (path, 0755);
  snprintf (config, sizeof config, "%s/conf", at);
  configure (at, config);
  for (int i = 0; i < RUNS; i++)
    took[i] = until_answer (at, config);
  qsort (took, RUNS, sizeof *took, by_size);
  return took[RUNS / 2];
}

int
main (void)
{
  char clean[64];
  double none, many;

  umask (077);
  if (!mkdtemp (folder))
    die ("no folder in /tmp");
  none = measure (0);
  many = measure (LEASES);
  printf ("restart to the first answer: %.0f ms without a lease, %.0f ms with %d (bar 1000)\n",
          none, many, LEASES);
  snprintf (clean, sizeof clean, "rm -rf %s", folder);
  return system (clean) ? 1 : 0;
}
