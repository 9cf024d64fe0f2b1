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
  fputs ("usage: gpubrokerd [--config FILE] [--check-config] [--backup FILE]\n"
         "                  [--log-level LEVEL] [--version]\n"
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
  const char *backup; /* where to */
  int level;          /* -1: the configuration's */
};

/* -1: go on; else the exit code. */
static int
read_argv (int argc, char **argv, struct options *o)
{
  static const struct option longs[] = { { "config", required_argument, NULL, 'c' },
                                         { "check-config", no_argument, NULL, 'k' },
                                         { "backup", required_argument, NULL, 'b' },
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
    case 'b':
      o->backup = optarg;
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

  signal (SIGPIPE, SIG_IGN);
  setrlimit (RLIMIT_CORE, &none);
  prctl (PR_SET_DUMPABLE, 0);
}

static int
fail (const struct err *e, int code)
{
  fprintf (stderr, "gpubrokerd: %s\n", e->text);
  return code;
}

static int
check (struct conf *c)
{
  struct err e = ERR_INIT;

  if (start_check_plugins (c, &e) < 0)
    return fail (&e, EXIT_USAGE);
  printf ("%s: %zu providers, %zu clusters: good\n", c->path, c->nproviders, c->nclusters);
  return 0;
}

static int
serve (struct broker *b, const struct options *o)
{
  struct err e = ERR_INIT;

  confine ();
  start_declare (&b->conf);
  if ((o->rebuild ? start_rebuild (b, o->instance, &e) : start_broker (b, &e)) < 0)
    return fail (&e, b->exit_code ? b->exit_code : 1);
  if (loop_run (b->loop, &e) < 0)
    log_at (LOG_CRIT, "loop.failed", "error=\"%s\"", e.text);
  start_undo (b);
  return b->exit_code;
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
  umask (077);
  if (conf_load (o.config, &b.conf, &e) < 0)
    return fail (&e, EXIT_USAGE);
  if (o.check)
    return check (&b.conf);
  if (o.backup)
    return store_copy (b.conf.broker.state_dir, o.backup, &e) < 0 ? fail (&e, 1) : 0;
  log_level (o.level >= 0 ? o.level : b.conf.broker.log_level);
  return serve (&b, &o);
}
