/* main.c - gpubroker-provider: loads one provider plugin and serves gpubrokerd over fd 3
 *
 * gpubrokerd starts it.  A person runs only --describe, which needs no configuration and makes no
 * traffic.
 */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include "core/child.h"
#include "core/clock.h"
#include "sdk/host/host.h"

static int
describe (const char *plugin)
{
  struct gpub_provider p;
  struct err e = ERR_INIT;
  AUTO_JSON json_t *j = NULL;

  if (loader_open (plugin, &p, &e) < 0) {
    fprintf (stderr, "gpubroker-provider: %s\n", e.text);
    return 1;
  }
  j = describe_plugin (&p);
  json_dumpf (j, stdout, JSON_INDENT (2));
  putchar ('\n');
  return fflush (stdout) == 0 ? 0 : 1;
}

static int
usage (FILE *to, int status)
{
  fputs ("usage: gpubroker-provider --describe PLUGIN\n"
         "Without arguments it serves gpubrokerd, which starts it.\n",
         to);
  return status;
}

static _Noreturn void
run (void)
{
  static struct host h; /* for the life of the process */
  struct err e = ERR_INIT;

  if (child_confine (&e) < 0 || (h.stdio = child_capture_stdio (&e)) < 0) {
    fprintf (stderr, "gpubroker-provider: %s\n", e.text);
    _exit (2);
  }
  if (curl_global_init (CURL_GLOBAL_DEFAULT) != CURLE_OK)
    _exit (2);
  clock_wall_ms (); /* it asks the environment once: before there are threads */
  pthread_mutex_init (&h.secrets_lock, NULL);
  pthread_mutex_init (&h.limiter_lock, NULL);
  pthread_mutex_init (&h.state_lock, NULL);
  services_fill (&h.table);
  out_init (&h.out, WIRE_FD);
  serve (&h);
}

int
main (int argc, char **argv)
{
  static const struct option options[] = {
    { "describe", required_argument, NULL, 'd' },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'V' },
    { NULL, 0, NULL, 0 },
  };
  int c = getopt_long (argc, argv, "", options, NULL), status;

  if (c == -1 && argc == 1)
    run ();
  if (c == 'V')
    return puts ("gpubroker-provider " PACKAGE_VERSION) < 0;
  status = c == 'd' && optind == argc ? describe (optarg)
                                      : usage (c == 'h' ? stdout : stderr, c == 'h' ? 0 : 2);
  fflush (NULL);
  _exit (status); /* a loaded plugin's library may have left an exit handler */
}
