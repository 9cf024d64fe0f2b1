/* main.c - gpubrokerd: argv, then everything in its order, then the loop */
#include "config.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/broker.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/start.h"

enum { EXIT_USAGE = 2 };

int64_t
now_ms (void)
{
  return clock_wall_ms ();
}

static void
usage (FILE *to)
{
  fputs ("usage: gpubrokerd [--config FILE] [--check-config] [--log-level LEVEL] [--version]\n"
         "       gpubrokerd [--config FILE] --rebuild [--instance UUID]\n"
         "LEVEL: error, warning, notice, info or debug.  See gpubrokerd(8).\n",
         to);
}

static int
level (const char *name)
{
  static const struct {
    const char *name;
    int level;
  } levels[] = { { "error", LOG_ERR },
                 { "warning", LOG_WARNING },
                 { "notice", LOG_NOTICE },
                 { "info", LOG_INFO },
                 { "debug", LOG_DEBUG } };

  for (size_t i = 0; i < N_ELEMENTS (levels); i++)
    if (strcmp (levels[i].name, name) == 0)
      return levels[i].level;
  return -1;
}

struct options {
  const char *config, *instance;
  bool check, rebuild;
  int level; /* -1: the configuration's */
};

/* -1: go on; else the exit code. */
static int
read_argv (int argc, char **argv, struct options *o)
{
  static const struct option longs[] = { { "config", required_argument, NULL, 'c' },
                                         { "check-config", no_argument, NULL, 'k' },
                                         { "log-level", required_argument, NULL, 'l' },
                                         { "rebuild", no_argument, NULL, 'r' },
                                         { "instance", required_argument, NULL, 'i' },
                                         { "version", no_argument, NULL, 'v' },
                                         { "help", no_argument, NULL, 'h' },
                                         { NULL, 0, NULL, 0 } };
  int c;

  while ((c = getopt_long (argc, argv, "c:h", longs, NULL)) != -1) {
    switch (c) {
    case 'c':
      o->config = optarg;
      break;
    case 'k':
      o->check = true;
      break;
    case 'l':
      o->level = level (optarg);
      if (o->level < 0) {
        usage (stderr);
        return EXIT_USAGE;
      }
      break;
    case 'r':
      o->rebuild = true;
      break;
    case 'i':
      o->instance = optarg;
      break;
    case 'v':
      puts ("gpubrokerd " PACKAGE_VERSION);
      return 0;
    case 'h':
      usage (stdout);
      return 0;
    default:
      usage (stderr);
      return EXIT_USAGE;
    }
  }
  if (o->instance && (!o->rebuild || !start_uuid (o->instance))) {
    fprintf (stderr, "gpubrokerd: --instance goes with --rebuild and takes a UUID: the tag "
                     "gpubroker-owner of a machine\n");
    return EXIT_USAGE;
  }
  if (optind < argc) {
    fprintf (stderr, "gpubrokerd: '%s' is not understood\n", argv[optind]);
    usage (stderr);
    return EXIT_USAGE;
  }
  return -1;
}

/* The books hold what a core dump must not: join tokens in memory, the SSH key. */
static void
confine (void)
{
  struct rlimit none = { 0, 0 };

  umask (077);
  signal (SIGPIPE, SIG_IGN);
  setrlimit (RLIMIT_CORE, &none);
  prctl (PR_SET_DUMPABLE, 0);
}

int
main (int argc, char **argv)
{
  struct options o = { .config = CONF_DEFAULT_PATH, .level = -1 };
  struct err e = ERR_INIT;
  struct broker b = { 0 };
  int rc = read_argv (argc, argv, &o);

  if (rc >= 0)
    return rc;
  if (conf_load (o.config, &b.conf, &e) < 0 || (o.check && start_check_plugins (&b.conf, &e) < 0)) {
    fprintf (stderr, "gpubrokerd: %s\n", e.text);
    return EXIT_USAGE;
  }
  if (o.check) {
    printf ("%s: %zu providers, %zu clusters: good\n", o.config, b.conf.nproviders,
            b.conf.nclusters);
    conf_free (&b.conf);
    return 0;
  }
  log_level (o.level >= 0 ? o.level : b.conf.broker.log_level);
  confine ();
  if (o.rebuild)
    rc = start_rebuild (&b, o.instance, &e);
  else
    rc = start_broker (&b, &e);
  if (rc < 0) {
    fprintf (stderr, "gpubrokerd: %s\n", e.text);
    return 1;
  }
  if (loop_run (b.loop, &e) < 0)
    log_at (LOG_CRIT, "loop.failed", "error=\"%s\"", e.text);
  start_undo (&b);
  return b.exit_code;
}
