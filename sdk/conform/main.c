/* main.c - gpubroker-conform: runs the table of cases over one plugin and prints TAP
 *
 * Whatever a case left is removed before the next one starts, and after a signal too.
 */
#include "config.h"

#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "core/json.h"
#include "sdk/conform/conform.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_LEFT = 3, LOG_SHOWN = 8 };

static volatile sig_atomic_t interrupted;

static void
on_signal (int signal)
{
  interrupted = signal;
}

/* ---- one case ---- */

static const char *
why_not (const struct kit *k, const struct test_case *c)
{
  static char text[120];

  if ((c->needs & (NEEDS_CLOUD | NEEDS_CONTROL | MAKES)) && k->mode == MODE_NONE)
    return "needs --fake, --replay or --live";
  if ((c->needs & NEEDS_CONTROL) && k->mode != MODE_FAKE)
    return "needs --fake";
  if ((c->needs & NEEDS_SECRET) && k->secrets.n == 0)
    return "the configuration has no secret";
  if (c->cap && !kit_has_cap (k, c->cap)) {
    snprintf (text, sizeof text, "the provider has no capability '%s'", c->cap);
    return text;
  }
  if (k->replay) {
    char path[PATH_MAX];
    struct stat st;

    snprintf (path, sizeof path, "%s/%s", k->replay, c->id);
    if ((c->needs & (NEEDS_CLOUD | MAKES)) && stat (path, &st) < 0)
      return "the recording has no such folder";
  }
  return interrupted ? "interrupted" : NULL;
}

static int
remove_one (const char *path, const struct stat *st, int type, struct FTW *at)
{
  (void) st;
  (void) type;
  (void) at;
  return remove (path);
}

static void
test_init (struct test *t, struct kit *k, const struct test_case *c)
{
  memset (t, 0, sizeof *t);
  t->kit = k;
  t->c = c;
  snprintf (t->state_dir, sizeof t->state_dir, "/tmp/gpubroker-conform-XXXXXX");
  if (!mkdtemp (t->state_dir)) {
    perror (t->state_dir);
    exit (EXIT_USAGE);
  }
}

static void
test_free (struct test *t)
{
  for (size_t i = 0; i < t->old.n; i++)
    answer_free (t->old.at[i]);
  for (size_t i = 0; i < t->made.n; i++) {
    free (t->made.at[i]->id);
    free (t->made.at[i]->token);
    json_decref (t->made.at[i]->ref);
    free (t->made.at[i]);
  }
  for (size_t i = 0; i < t->log.n; i++)
    free (t->log.at[i]);
  for (size_t i = 0; i < t->kept.n; i++)
    json_decref (t->kept.at[i]);
  vec_free (&t->old);
  vec_free (&t->made);
  vec_free (&t->log);
  vec_free (&t->kept);
  nftw (t->state_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
report (const struct test *t, size_t number)
{
  const struct test_case *c = t->c;

  if (t->failed) {
    printf ("not ok %zu - %s: %s\n", number, c->id, c->title);
    printf ("# expected: %s\n# got: %s\n# rule: %s\n", t->expected, t->got, c->rule);
    for (size_t i = t->log.n > LOG_SHOWN ? t->log.n - LOG_SHOWN : 0; i < t->log.n; i++)
      printf ("# log: %s\n", t->log.at[i]);
  } else if (t->skipped) {
    printf ("ok %zu - %s # SKIP %s\n", number, c->id, t->why);
  } else {
    printf ("ok %zu - %s: %s\n", number, c->id, c->title);
  }
  fflush (stdout);
}

static void
run_case (struct kit *k, const struct test_case *c, size_t number, int totals[3])
{
  const char *why = why_not (k, c);
  struct test t;

  test_init (&t, k, c);
  if (why) {
    skip (&t, "%s", why);
  } else {
    c->run (&t);
    stop (&t);
    calm (&t);
    remove_all_made (&t);
    stop (&t);
    look_for_secrets_in_state (&t);
  }
  report (&t, number);
  totals[t.failed ? 1 : t.skipped ? 2 : 0]++;
  test_free (&t);
}

/* ---- all of them ---- */

static bool
is_chosen (const char *id, const char *const *chosen, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp (chosen[i], id) == 0)
      return true;
  return n == 0;
}

static int
run_all (struct kit *k, const char *const *chosen, size_t n)
{
  int totals[3] = { 0, 0, 0 };
  size_t number = 0;

  for (size_t i = 0; i < ncases; i++)
    if (is_chosen (cases[i].id, chosen, n))
      run_case (k, &cases[i], ++number, totals);
  printf ("1..%zu\n# %d passed, %d failed, %d skipped\n", number, totals[0], totals[1], totals[2]);
  if (k->mode == MODE_LIVE)
    printf ("# spent at most $%.4f, an hour of each machine, of $%.4f\n",
            (double) k->spent_udollar / 1e6, (double) k->budget_udollar / 1e6);
  if (k->left > 0)
    printf ("# %u machines could not be removed: remove them by hand, they bill\n", k->left);
  return k->left > 0 ? EXIT_LEFT : totals[1] > 0 ? EXIT_FAILED : 0;
}

static int
list_cases (void)
{
  for (size_t i = 0; i < ncases; i++)
    printf ("%-16s %s\n%-16s   %s\n", cases[i].id, cases[i].title, "", cases[i].rule);
  return 0;
}

/* ---- the command line ---- */

static const char usage_text[] =
    "usage: gpubroker-conform [--config FILE [--provider NAME]]\n"
    "         [--fake COMMAND | --replay DIR | --live --budget DOLLARS] [--record DIR]\n"
    "         [--case ID]... [--valgrind] [--verbose] PLUGIN.so\n"
    "       gpubroker-conform --list\n";

static int
usage (const char *why)
{
  if (why)
    fprintf (stderr, "gpubroker-conform: %s\n", why);
  fputs (usage_text, why ? stderr : stdout);
  return why ? EXIT_USAGE : 0;
}

static bool
read_budget (const char *text, uint64_t *udollar)
{
  char *end;
  double d = strtod (text, &end);

  if (*end || end == text || !(d >= 0 && d < 1e6))
    return false;
  *udollar = (uint64_t) (d * 1e6);
  return true;
}

struct args {
  VEC (const char *) cases;
  const char *budget;
  bool live, list, help, version, wrong;
};

static void
parse (int argc, char **argv, struct kit *k, struct args *a)
{
  static const struct option options[] = {
    { "config", required_argument, NULL, 'c' }, { "provider", required_argument, NULL, 'p' },
    { "fake", required_argument, NULL, 'f' },   { "replay", required_argument, NULL, 'r' },
    { "record", required_argument, NULL, 'R' }, { "live", no_argument, NULL, 'l' },
    { "budget", required_argument, NULL, 'b' }, { "case", required_argument, NULL, 'C' },
    { "list", no_argument, NULL, 'L' },         { "valgrind", no_argument, NULL, 'g' },
    { "verbose", no_argument, NULL, 'v' },      { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'V' },      { NULL, 0, NULL, 0 },
  };

  for (int c; (c = getopt_long (argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
    case 'c':
      k->config_file = optarg;
      break;
    case 'p':
      k->provider = optarg;
      break;
    case 'f':
      k->fake_command = optarg;
      break;
    case 'r':
      k->replay = optarg;
      break;
    case 'R':
      k->record = optarg;
      break;
    case 'l':
      a->live = true;
      break;
    case 'b':
      a->budget = optarg;
      break;
    case 'C':
      *vec_push (&a->cases) = optarg;
      break;
    case 'L':
      a->list = true;
      break;
    case 'g':
      k->valgrind = true;
      break;
    case 'v':
      k->verbose = true;
      break;
    case 'h':
      a->help = true;
      break;
    case 'V':
      a->version = true;
      break;
    default:
      a->wrong = true;
      break;
    }
  }
}

static const char *
check (struct kit *k, const struct args *a, int operands)
{
  int modes = (k->fake_command != NULL) + (k->replay != NULL) + a->live;

  if (a->wrong || operands != 1)
    return "one plugin is judged at a time";
  if (modes > 1)
    return "--fake, --replay and --live exclude each other";
  if (k->record && (k->replay || modes == 0))
    return "--record needs --fake or --live";
  if (a->live != (a->budget != NULL))
    return "--live and --budget go together";
  if (a->budget && !read_budget (a->budget, &k->budget_udollar))
    return "--budget takes dollars, as in 1.50";
  for (size_t i = 0; i < a->cases.n; i++) {
    bool known = false;

    for (size_t j = 0; j < ncases; j++)
      known |= strcmp (cases[j].id, a->cases.at[i]) == 0;
    if (!known)
      return "there is no such case: see --list";
  }
  k->mode = k->fake_command ? MODE_FAKE : k->replay ? MODE_REPLAY : a->live ? MODE_LIVE : MODE_NONE;
  return NULL;
}

static char *
host_path (void)
{
  const char *folder = getenv ("GPUB_LIBEXECDIR");
  char *path;

  if (asprintf (&path, "%s/gpubroker-provider", folder && *folder ? folder : PKGLIBEXECDIR) < 0)
    abort ();
  return path;
}

static int
judge (struct kit *k, const struct args *a, const char *plugin)
{
  AUTO_FREE char *host = host_path ();
  struct err e = ERR_INIT;
  int status;

  k->host = host;
  k->plugin = realpath (plugin, NULL);
  if (!k->plugin) {
    fprintf (stderr, "gpubroker-conform: %s: %s\n", plugin, strerror (errno));
    return EXIT_USAGE;
  }
  if (kit_setup (k, &e) < 0) {
    fprintf (stderr, "gpubroker-conform: %s\n", e.text);
    status = EXIT_USAGE;
  } else {
    printf ("# %s %s, ABI %lld, on %s\n", json_str (k->describe, "name", "?"),
            json_str (k->describe, "version", "?"), (long long) kit_number (k, "abi"), k->host);
    status = run_all (k, a->cases.at, a->cases.n);
  }
  kit_free (k);
  return status;
}

int
main (int argc, char **argv)
{
  static struct kit k;
  struct sigaction act = { .sa_handler = on_signal };
  struct args a = { .cases = VEC_EMPTY };
  const char *why;
  int status;

  close_range (3, ~0U, 0); /* a child's table of them is as long as ours: see proc.c */
  parse (argc, argv, &k, &a);
  if (a.help || a.list)
    return a.list ? list_cases () : usage (NULL);
  if (a.version)
    return puts ("gpubroker-conform " PACKAGE_VERSION) < 0;
  why = check (&k, &a, argc - optind);
  if (why)
    return usage (why);
  sigaction (SIGINT, &act, NULL);
  sigaction (SIGTERM, &act, NULL);
  signal (SIGPIPE, SIG_IGN);
  curl_global_init (CURL_GLOBAL_DEFAULT);
  status = judge (&k, &a, argv[optind]);
  vec_free (&a.cases);
  fflush (NULL);
  _exit (status); /* exit handlers of libcurl's libraries hang under a preloaded sanitizer */
}
