/* conform.h - the map of gpubroker-conform
 *
 * A case is a row of the table in table.c.  It asks the plugin through the real gpubroker-provider
 * over the real wire (session.c), compares what came with what a rule says (verdict.c), and may
 * return at its first failed check: whatever it started, made or allocated belongs to its struct
 * test and is ended, removed and freed by main.c.
 */
#ifndef GPUB_CONFORM_H
#define GPUB_CONFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "core/conf.h"
#include "core/err.h"
#include "core/vec.h"
#include "core/wire.h"

enum mode { MODE_NONE, MODE_FAKE, MODE_REPLAY, MODE_LIVE };

struct test;

/* ---- setup.c: what is judged, and with which configuration ---- */

struct secret {
  char *name, *bytes;
  size_t len;
};

struct fake {
  pid_t pid;
  int in, out;   /* its stdin: closing it ends it; its stdout */
  json_t *hello; /* {"url", "control", ...}: %{NAME} in the configuration */
  long status;   /* HTTP status of the last control call */
};

struct kit {
  enum mode mode;
  const char *config_file, *provider, *fake_command, *record, *replay, *host;
  char *plugin; /* absolute */
  bool valgrind, verbose;
  unsigned left; /* machines that could not be removed */
  uint64_t budget_udollar, spent_udollar;
  char run[16], owner[40]; /* of this run: the mark on all that it makes */
  struct fake fake;
  json_t *options, *http, *describe;
  VEC (struct secret) secrets;
};

int kit_setup (struct kit *k, struct err *e);
void kit_free (struct kit *k);
bool kit_has_cap (const struct kit *k, const char *cap);
int64_t kit_number (const struct kit *k, const char *name); /* of --describe */
/* The declared option, {} for none. */
const json_t *kit_option (const struct kit *k, const char *name);
bool option_is (const json_t *option, const char *flag);
/* How much longer than alone everything may take. */
int64_t kit_patience (const struct kit *k, int64_t ms);

/* ---- fake.c: the cloud's double and its control calls ---- */

int fake_start (struct fake *f, const char *command, struct err *e);
void fake_stop (struct fake *f);
/* NULL when it refused; the caller owns the answer.  Takes body. */
json_t *fake_control (struct fake *f, const char *method, const char *path, json_t *body);

/* ---- proc.c: what a process has ---- */

struct proc_has {
  long fds; /* open ones, or the size of its table where we may not look; see exact */
  long threads, children, rss_kib, size_kib;
  bool exact;
};
struct proc_has proc_look (pid_t pid);
int proc_group_size (pid_t group); /* processes left in it */
/* The program's symbols besides gpub_provider_entry: how many, and the first. -1: no ELF. */
int proc_exports (const char *file, char first[128], bool *has_entry);

/* ---- session.c: one gpubroker-provider ---- */

struct answer {
  char call[20];
  uint32_t id;
  bool done;
  enum err_kind kind;
  char text[300], code[80];
  int64_t retry_after_ms, deadline_ms, started_ms, took_ms;
  json_t *machines, *offers, *resources, *scopes, *value;
};
void answer_free (struct answer *a);

struct session_how { /* what differs from the configuration; all may be NULL */
  const json_t *options;
  const char *without_secret, *wrong_secret;
};

struct session {
  struct test *test;
  pid_t pid;
  int fd, status; /* status: as waitpid says, once it has ended */
  bool closed;    /* it has closed its end */
  struct wire_buf in, out;
  json_t *ready;
  uint32_t last_id;
  VEC (struct answer *) answers;
};
void session_kill (struct session *s);
/* It died or hangs during a call: fails the test, and is gone. */
void session_lost (struct session *s, const char *during);

/* Ends the test's session, if any, and starts another: again with what differs from the
 * configuration.  False when the test no longer stands; `again` also wants READY ok. */
bool again (struct test *t);
bool again_with (struct test *t, const struct session_how *how);
bool is_ready (struct test *t); /* else the test fails */
bool is_refused (const struct test *t);
void stop (struct test *t);

/* ---- frames.c ---- */

enum moved { MOVED_NOTHING, MOVED, MOVED_CLOSED };
enum moved session_move (struct session *s, int64_t ms);
/* False when the process closed its end, or the time was over, first. */
bool session_wait (struct session *s, bool (*met) (const void *), const void *what, int64_t ms);

/* ---- ask.c: on the test's session, which is started when there is none ---- */

enum { DEADLINE_MS = 15000 };
/* Takes args; never NULL; lives as long as the test. */
struct answer *ask (struct test *t, const char *call, json_t *args);
struct answer *ask_within (struct test *t, int64_t deadline_ms, const char *call, json_t *args);
struct answer *ask_begin (struct test *t, int64_t deadline_ms, const char *call, json_t *args);
void ask_cancel (struct test *t, const struct answer *a);
struct answer *ask_end (struct test *t, struct answer *a);

/* ---- verdict.c ---- */

struct made {
  char *id, *token;
  json_t *ref;
  bool gone; /* a get said so */
  char stays[300];
};

struct test {
  struct kit *kit;
  const struct test_case *c;
  struct session *s;
  char state_dir[64];
  bool failed, skipped;
  unsigned tokens;
  char expected[500], got[1500], why[200];
  VEC (struct answer *) old; /* of ended sessions */
  VEC (struct made *) made;
  const json_t *offers; /* of the first list_offers; an answer's */
  unsigned sessions;
  VEC (char *) log;
  VEC (json_t *) kept;
};

/* All return whether the test still stands; the first failure is what is reported. */
bool expect (struct test *t, bool pass, const struct answer *got, const char *expected, ...)
    PRINTF (4, 5);
bool expect_text (struct test *t, bool pass, const char *got, const char *expected, ...)
    PRINTF (4, 5);
bool expect_kind (struct test *t, const struct answer *a, enum err_kind kind, const char *what);
bool skip (struct test *t, const char *why, ...) PRINTF (2, 3); /* always false */
json_t *keep (struct test *t, json_t *j);                       /* until the test ends */
void note_log (struct test *t, const char *line);
void look_for_secrets_in_state (struct test *t);
void look_for_secrets (struct test *t, const char *where, const char *text, size_t len);

/* ---- machines.c: offers, creates, and what the cloud itself says is there ---- */

/* The cheapest offer with a price and stock, and its price.  NULL fails the test. */
uint64_t all_in (const json_t *offer); /* micro-dollars an hour */
const char *cheapest (struct test *t, uint64_t *price_udollar);
const char *other_offer (struct test *t, const char *than); /* NULL: there is only one */
const char *new_token (struct test *t);                     /* kept */
json_t *create_args (struct test *t, const char *offer, const char *token);
/* A machine of the cheapest offer that exists and is in t->made; NULL fails (or skips) the test. */
struct made *make (struct test *t);
/* False, and the test is skipped, when an hour of it is beyond the budget of --live. */
bool afford (struct test *t, uint64_t price_udollar);
/* Notes what an answer says was made, so that it is removed whatever comes. */
struct made *note_made (struct test *t, const struct answer *a, const char *token);
json_t *find_args (const char *token);
void make_old (json_t *ref);
json_t *ref_args (const struct made *m);
const json_t *with_id (const json_t *machines, const char *id);
bool scope_complete (const struct answer *a, const char *scope);
struct answer *remove_patiently (struct test *t, const struct made *m);
/* Removes it and waits until get says that it is gone. */
bool unmake (struct test *t, struct made *m);
bool wait_gone (struct test *t, struct made *m);
void remove_all_made (struct test *t);
/* The live ones of ours, as the fake itself knows them: [{"id", ...}]; kept. */
const json_t *truth (struct test *t);
bool fault (struct test *t, const char *kind, int times, int skip_requests, json_t *more);
void calm (struct test *t);
/* How many requests the fake has had; -1 when it does not count. */
long requests (struct test *t);

/* ---- table.c ---- */

enum {
  NEEDS_CLOUD = 1,   /* --fake, --replay or --live */
  NEEDS_CONTROL = 2, /* --fake */
  NEEDS_SECRET = 4,  /* an option that is one */
  MAKES = 8,         /* a machine: --fake, --replay, or --live within the budget */
};
struct test_case {
  const char *id, *title, *rule;
  unsigned needs;
  const char *cap; /* skipped without it */
  void (*run) (struct test *t);
};
extern const struct test_case cases[];
extern const size_t ncases;

#define CASE(name) void case_##name (struct test *t)
CASE (table);
CASE (exports);
CASE (options_missing);
CASE (options_type);
CASE (options_odd);
CASE (secret_missing);
CASE (probe);
CASE (wrong_key);
CASE (offers);
CASE (requote);
CASE (bad_offer);
CASE (price_cap);
CASE (life);
CASE (create_limits);
CASE (create_twice);
CASE (other_shape);
CASE (find_nothing);
CASE (get_unknown);
CASE (remove_unknown);
CASE (remove_twice);
CASE (foreign);
CASE (not_after);
CASE (console);
CASE (parallel);
CASE (paging);
CASE (rate_limited);
CASE (refused_key);
CASE (no_absence);
CASE (get_faults);
CASE (create_lost);
CASE (create_garbled);
CASE (create_timeout);
CASE (out_of_stock);
CASE (late_refusal);
CASE (vanished);
CASE (remove_lost);
CASE (cancel);
CASE (leaks);

#endif
