/* supervise.c - children that crash, hang, lie, flood; each call ends once, and as what it must */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/supervise.h"
#include "tests/unit/tap.h"

enum { MAX_CALLS = 64 };

static const struct supervise_times times = {
  .hello = 2000,
  .ready = 2000,
  .ping = 500,
  .grace = 100,
  .delay_min = 100,
  .delay_max = 800,
  .steady = 5000,
  .stop = 1000,
  .quarantine = 300,
  .quarantine_max = 1000,
};

struct seen { /* what one call came to */
  int results, items, acks_wanted;
  uint32_t id;
  struct err err;
  bool sent;
  int64_t pid;
  int http_status;
  char request_id[32], secret[64];
  size_t secret_len, elements;
};

static struct loop *loop;
static struct supervisor *sup;
static struct seen seen[MAX_CALLS];
static int nseen, told[CHILD_STOPPED + 1];
static char program[1024];

static int
flush (void *ctx)
{
  (void) ctx;
  supervisor_flush (sup);
  return 0;
}

static void
on_state (void *ctx, struct child *c, enum child_state state)
{
  (void) ctx, (void) c;
  told[state]++;
}

static void
on_item (void *ctx, uint32_t id, const json_t *item, bool want_ack)
{
  struct seen *s = ctx;

  (void) id;
  s->items++;
  s->acks_wanted += want_ack;
  s->elements = json_array_size (json_object_get (item, "offers"));
}

static void
on_result (void *ctx, uint32_t id, const struct call_result *r)
{
  struct seen *s = ctx;

  s->results++;
  s->id = id;
  s->err = r->err;
  s->sent = r->sent;
  s->pid = json_i64 (r->value, "pid", 0);
  s->http_status = r->http_status;
  snprintf (s->request_id, sizeof s->request_id, "%s", r->request_id);
  snprintf (s->secret, sizeof s->secret, "%s", json_str (r->value, "secret", ""));
  if (r->nsecrets) {
    s->secret_len = r->secrets[0].len;
    memcpy (s->secret, r->secrets[0].bytes, s->secret_len);
  }
}

static struct child *
start_as (const char *role, const char *start, int parallel, unsigned flags)
{
  const char *argv[] = { program, role, NULL };
  AUTO_JSON json_t *config = json_pack ("{s:s, s:i}", "start", start, "parallel", parallel);
  struct child_secret key = { "key", "k3y", 3 };
  struct child_spec spec = {
    .name = "bad",
    .role = "test",
    .argv = argv,
    .config = config,
    .secrets = &key,
    .nsecrets = 1,
    .flags = flags,
  };

  memset (seen, 0, sizeof seen);
  memset (told, 0, sizeof told);
  nseen = 0;
  return child_new (sup, &spec, on_state, NULL);
}

static struct child *
start (const char *how, int parallel, unsigned flags)
{
  return start_as ("test", how, parallel, flags);
}

static struct seen *
ask_for (struct child *c, const char *call, const char *key, bool mutates, int64_t ms)
{
  struct seen *s = &seen[nseen++];
  struct child_call want = {
    .call = call,
    .key = key,
    .deadline_ms = ms,
    .mutates = mutates,
    .on_item = on_item,
    .on_result = on_result,
    .ctx = s,
  };

  s->id = child_call (c, &want);
  return s;
}

static struct seen *
ask (struct child *c, const char *call)
{
  return ask_for (c, call, NULL, false, 5000);
}

static bool
all_ended (void *ctx)
{
  int n = *(int *) ctx;

  for (int i = 0; i < n; i++)
    if (!seen[i].results)
      return false;
  return true;
}

static bool
until (bool (*done_p) (void *ctx), void *ctx)
{
  int64_t end = clock_boot_ms () + 8000;

  while (!done_p (ctx) && clock_boot_ms () < end)
    loop_turn (loop, 20, NULL);
  return done_p (ctx);
}

static bool
settle (void)
{
  return until (all_ended, &nseen);
}

static bool
is_up (void *ctx)
{
  return child_state (ctx) == CHILD_UP;
}

static bool
is_stopped (void *ctx)
{
  return child_state (ctx) == CHILD_STOPPED;
}

static bool
is_quarantined (void *ctx)
{
  return child_state (ctx) == CHILD_QUARANTINED;
}

static bool
is_down (void *ctx)
{
  return child_state (ctx) == CHILD_DOWN;
}

static bool
is_sent (void *ctx)
{
  AUTO_JSON json_t *d = child_describe (ctx);

  return json_i64 (d, "in_flight", 0) > 0;
}

static void
turns (int n)
{
  while (n--)
    loop_turn (loop, 5, NULL);
}

static void
no_child_left (const char *after)
{
  ok (waitpid (-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no process is left after %s", after);
}

static void
stop (struct child *c)
{
  child_stop (c);
  until (is_stopped, c);
  child_free (c);
  turns (2);
}

static void
test_good (void)
{
  struct child *c = start ("", 8, 0);
  struct seen *s = ask (c, "echo"), *p = ask (c, "partial"), *b = ask (c, "batch"),
              *t = ask (c, "token");
  AUTO_JSON json_t *d = NULL;

  ok (s->results == 0 && p->results == 0, "no callback runs inside child_call");
  settle ();
  ok (s->results == 1 && s->err.kind == ERR_NONE && s->sent,
      "a call is queued until the child is up, and answered");
  is_str (s->secret, "key=k3y", "the child had its secret");
  ok (p->err.kind == ERR_CAPACITY && p->http_status == 409 && p->err.retry_after_ms == 1500,
      "a result that comes byte by byte is whole");
  is_str (p->err.text, "none left", "control characters of its text are gone");
  is_str (p->request_id, "r-1", "request id");
  ok (b->err.kind == ERR_NONE && b->elements == 64, "a batch of 64 wide offers passes the guard");
  ok (t->secret_len == 9 && memcmp (t->secret, "raw\0bytes", 9) == 0,
      "a secret comes with its result");
  d = child_describe (c);
  is_str (json_str (d, "state", ""), "up", "described as up");
  is_num (json_i64 (d, "calls", 0), 4, "with its calls");
  is_num (json_i64 (d, "errors", 0), 1, "and its errors");
  ok (told[CHILD_STARTING] + told[CHILD_UP] >= 1 && told[CHILD_DOWN] == 0, "states were told");
  stop (c);
  ok (told[CHILD_STOPPED] == 1, "an orderly stop is told once");
  no_child_left ("an orderly stop");
}

static void
test_ack (void)
{
  struct child *c = start ("", 8, 0);
  struct seen *s = ask (c, "book");
  int64_t end = clock_boot_ms () + 3000;

  while (!s->items && clock_boot_ms () < end)
    loop_turn (loop, 20, NULL);
  turns (5);
  ok (s->items == 1 && s->acks_wanted == 1 && s->results == 0,
      "the child waits while an item is not in the books");
  child_ack (c, s->id);
  child_ack (c, s->id);
  settle ();
  ok (s->err.kind == ERR_NONE, "after the ACK it goes on");
  stop (c);
}

static void
test_crash (void)
{
  struct child *c = start ("", 8, 0);
  struct seen *r = ask_for (c, "hold", "", false, 5000), *m = ask_for (c, "hold", "b", true, 5000);
  struct seen *k = ask_for (c, "crash", "", true, 5000), *after;
  int64_t pid;

  settle ();
  ok (r->err.kind == ERR_UNAVAILABLE && m->err.kind == ERR_UNKNOWN && k->err.kind == ERR_UNKNOWN,
      "a crash ends reads UNAVAILABLE and sent mutations UNKNOWN");
  is_str (m->err.code, "child-died", "with a code");
  ok (strstr (m->err.text, "signal 11") != NULL, "and what it died of: %s", m->err.text);
  after = ask (c, "echo");
  settle ();
  pid = after->pid;
  ok (after->err.kind == ERR_NONE && pid > 0, "it was started again");
  kill ((pid_t) pid, SIGKILL);
  until (is_down, c);
  after = ask_for (c, "echo", "", false, 10);
  ok (after->results == 0, "still no callback in child_call");
  turns (1);
  ok (after->results == 1 && after->err.kind == ERR_UNAVAILABLE && after->err.retry_after_ms > 0,
      "a call that cannot make it before the restart ends at once: %s", after->err.text);
  stop (c);
}

static void
test_lies (void)
{
  static const char *const calls[] = { "garbage", "stranger", "deep", "again" };

  for (size_t i = 0; i < N_ELEMENTS (calls); i++) {
    struct child *c = start ("", 8, 0);
    struct seen *s = ask_for (c, calls[i], "", true, 5000), *after;

    settle ();
    ok (s->err.kind == ERR_UNKNOWN, "%s kills the child: %s", calls[i], s->err.text);
    after = ask (c, "echo");
    settle ();
    ok (after->err.kind == ERR_NONE, "another one serves after %s", calls[i]);
    stop (c);
  }
  no_child_left ("broken frames");
}

static void
test_start (void)
{
  struct child *c = start ("crash", 8, 0);
  struct seen *s;
  AUTO_JSON json_t *d = NULL, *config = json_object ();

  ok (until (is_quarantined, c), "a child that never comes up is quarantined");
  d = child_describe (c);
  ok (json_i64 (d, "restarts", 0) >= 4, "after doubling delays");
  child_reconfigure (c, config, NULL, 0);
  ok (until (is_up, c), "a new configuration starts it at once");
  s = ask (c, "echo");
  settle ();
  is_str (s->secret, "", "without the old secret");
  stop (c);

  c = start ("invalid", 8, 0);
  ok (until (is_down, c), "a refused configuration is down, not a crash");
  json_decref (d);
  d = child_describe (c);
  is_str (json_str (d, "last_error", ""), "no key", "and says why");
  ok (json_i64 (d, "restart_in_ms", 0) > times.delay_max / 2, "it is tried again slowly");
  stop (c);

  c = start_as ("kube", "", 8, 0);
  ok (until (is_down, c), "a child of another role is not used");
  stop (c);
  no_child_left ("failing starts");
}

static void
test_overdue (void)
{
  struct child *c = start ("", 8, 0);
  struct seen *m = ask (c, "echo"), *h, *e;

  settle (); /* it is up: what comes now is sent at once */
  m = ask_for (c, "later", "m", true, 5000);
  h = ask_for (c, "hold", "h", false, 300);
  settle ();
  ok (h->err.kind == ERR_UNAVAILABLE, "a read that does not return ends UNAVAILABLE");
  is_str (h->err.code, "overdue", "as overdue");
  ok (m->err.kind == ERR_NONE, "the mutation beside it ends as it would");
  e = ask (c, "echo");
  settle ();
  ok (e->err.kind == ERR_NONE && e->pid != m->pid, "new work goes to the replacement");
  e = ask_for (c, "stall", "s", true, 300);
  settle ();
  ok (e->err.kind == ERR_UNKNOWN, "a mutation that does not return ends UNKNOWN");
  stop (c);
  no_child_left ("a hang");
}

/* The old process must live as long as a mutation of it may. */
static void
test_held (void)
{
  struct child *c = start ("", 8, 0);
  struct seen *warm = ask (c, "echo"), *m, *h, *e;
  int64_t old;

  settle ();
  old = warm->pid;
  nseen = 0;
  memset (seen, 0, sizeof seen);
  m = ask_for (c, "hold", "m", true, 2000);
  h = ask_for (c, "hold", "h", false, 200);
  while (!h->results)
    loop_turn (loop, 20, NULL);
  e = ask (c, "echo");
  while (!e->results)
    loop_turn (loop, 20, NULL);
  ok (e->pid != old && m->results == 0 && kill ((pid_t) old, 0) == 0,
      "the hung process keeps its mutation while another one serves");
  settle ();
  ok (m->err.kind == ERR_UNKNOWN, "past its own deadline the mutation is UNKNOWN");
  for (int i = 0; i < 100 && kill ((pid_t) old, 0) == 0; i++)
    loop_turn (loop, 20, NULL);
  ok (kill ((pid_t) old, 0) < 0 && errno == ESRCH, "and the process is killed and reaped");
  stop (c);
}

/* Their deadlines are far: what ends them is that their process says nothing any more. */
static void
hang (unsigned flags, struct seen **r, struct seen **m)
{
  struct child *c = start ("", 8, flags);
  struct seen *warm = ask (c, "echo"), *after;
  int64_t old;

  settle ();
  old = warm->pid;
  nseen = 0;
  memset (seen, 0, sizeof seen);
  *r = ask_for (c, "later", "r", false, 60000);
  *m = ask_for (c, "later", "m", true, 4000);
  until (is_sent, c);
  turns (2);
  kill ((pid_t) old, SIGSTOP);
  ok (settle (), "every call to a process that hangs ends");
  after = ask (c, "echo");
  settle ();
  ok (after->err.kind == ERR_NONE && after->pid != old, "another process serves");
  ok (waitpid ((pid_t) old, NULL, WNOHANG) < 0, "and the one that hung is killed and reaped");
  stop (c);
  no_child_left ("a process that hung");
}

static void
test_hung (void)
{
  struct seen *r, *m;
  struct child *c;
  int64_t end;

  hang (0, &r, &m);
  is_str (r->err.code, "child-died", "a read is lost with it");
  ok (m->err.kind == ERR_UNKNOWN, "a mutation is UNKNOWN, once its deadline is over");
  hang (CHILD_REPLAY, &r, &m);
  ok (r->err.kind == ERR_NONE, "what may be repeated goes on in the new process");
  c = start ("", 8, 0);
  until (is_up, c);
  end = clock_boot_ms () + 3 * times.ping + 500;
  r = ask_for (c, "echo", "", false, 5000);
  while (clock_boot_ms () < end)
    loop_turn (loop, 100, NULL);
  m = ask (c, "echo");
  settle ();
  ok (r->pid == m->pid, "an idle process that answers its PINGs lives on");
  stop (c);
}

static void
test_quarantine (void)
{
  struct child *c = start ("", 8, 0);
  struct seen *s;
  int64_t end;

  for (int i = 0; i < 3; i++) {
    s = ask_for (c, "crash", "lease-7", true, 5000);
    settle ();
    ok (s->err.kind == ERR_UNKNOWN && s->sent, "death %d", i + 1);
  }
  s = ask_for (c, "crash", "lease-7", true, 5000);
  settle ();
  ok (s->err.kind == ERR_UNAVAILABLE && !s->sent && s->err.retry_after_ms > 0,
      "then it is refused: %s", s->err.text);
  is_str (s->err.code, "quarantined", "as quarantined");
  s = ask_for (c, "echo", "lease-7", true, 5000);
  settle ();
  ok (s->err.kind == ERR_NONE, "other calls are not");
  end = clock_boot_ms () + times.quarantine + 20;
  while (clock_boot_ms () < end)
    loop_turn (loop, 20, NULL);
  s = ask_for (c, "crash", "lease-7", true, 5000);
  settle ();
  ok (s->sent, "after a while it may try again");
  s = ask_for (c, "crash", "lease-7", true, 5000);
  settle ();
  ok (s->err.retry_after_ms > times.quarantine, "and is refused for longer: %u ms",
      s->err.retry_after_ms);
  for (int i = 0; i < 3; i++) {
    s = ask_for (c, "sick", "x", false, 5000);
    settle ();
  }
  s = ask_for (c, "sick", "x", false, 5000);
  settle ();
  is_str (s->err.code, "quarantined", "internal faults count too");
  stop (c);
}

static void
test_parallel (void)
{
  struct child *c = start ("", 2, 0);
  AUTO_JSON json_t *d = NULL;
  struct seen *h[4];

  for (int i = 0; i < 4; i++)
    h[i] = ask (c, "hold");
  until (is_sent, c);
  turns (3);
  d = child_describe (c);
  ok (json_i64 (d, "in_flight", 0) == 2 && json_i64 (d, "queued", 0) == 2,
      "max_parallel bounds what is in flight");
  child_cancel (c, h[3]->id);
  turns (2);
  ok (h[3]->err.kind == ERR_CANCELLED && !h[3]->sent, "a queued call is cancelled at once");
  child_cancel (c, h[0]->id);
  child_cancel (c, h[0]->id);
  for (int i = 0; i < 100 && !h[0]->results; i++)
    loop_turn (loop, 20, NULL);
  ok (h[0]->err.kind == ERR_CANCELLED && h[0]->sent, "a call in flight is cancelled by the child");
  turns (3);
  is_num ((int64_t) child_in_flight (c), 2, "the next one took its place");
  child_cancel (c, h[1]->id);
  child_cancel (c, h[2]->id);
  settle ();
  for (int i = 0; i < 4; i++)
    ok (h[i]->results == 1, "call %d ended once", i);
  stop (c);
}

/* A child that does not read is sent no more than what it may leave unread. */
static void
test_slow_reader (void)
{
  struct child *c = start ("", 64, 0);
  AUTO_JSON json_t *d = NULL;
  AUTO_FREE char *pad = calloc (1, 200 * 1024 + 1);
  struct seen *s = ask (c, "echo");

  settle ();
  memset (pad, 'x', 200 * 1024);
  s = ask_for (c, "stall", "", true, 3000);
  turns (3);
  for (int i = 0; i < 30; i++) {
    struct seen *big = &seen[nseen++];
    struct child_call want = {
      .call = "echo",
      .args = json_pack ("{s:s}", "pad", pad),
      .deadline_ms = 3000,
      .on_result = on_result,
      .ctx = big,
    };

    child_call (c, &want);
  }
  turns (5);
  d = child_describe (c);
  ok (json_i64 (d, "in_flight", 0) < 12 && json_i64 (d, "queued", 0) > 18,
      "a child that does not read is not fed on");
  ok (settle () && s->err.kind == ERR_UNKNOWN, "and every call ends all the same");
  stop (c);
}

static int64_t logged;

static void
test_flood (void)
{
  struct child *c = start ("", 8, 0);
  struct seen *s;
  int saved = dup (2), fds[2];
  int64_t seconds;
  static char text[256 * 1024];
  ssize_t n;

  s = ask (c, "echo");
  settle ();
  (void) s;
  if (pipe (fds) < 0)
    return;
  fflush (stderr);
  dup2 (fds[1], 2);
  s = ask (c, "flood");
  seconds = clock_boot_ms () / 1000;
  settle ();
  seconds = clock_boot_ms () / 1000 - seconds;
  fflush (stderr);
  dup2 (saved, 2);
  close (fds[1]);
  close (saved);
  n = read (fds[0], text, sizeof text - 1);
  close (fds[0]);
  text[n > 0 ? n : 0] = '\0';
  for (char *p = text; (p = strstr (p, "child=bad")); p++)
    logged++;
  ok (s->err.kind == ERR_NONE && logged >= 100 && logged <= 100 * (2 + seconds),
      "a flood of log lines is bounded: %" PRId64, logged);
  ok (!strstr (text, "FLOOD") && strstr (text, "line line"), "what it writes is cleaned");
  stop (c);
}

static void
test_replay (void)
{
  struct child *c = start ("", 64, CHILD_REPLAY);
  struct seen *s[20], *culprit;
  AUTO_JSON json_t *d = NULL;
  int good = 0;

  for (int i = 0; i < 20; i++)
    s[i] = ask_for (c, i == 13 ? "crash" : "later", i == 13 ? "poison" : "", true, 8000);
  culprit = s[13];
  ok (settle (), "every call ends");
  for (int i = 0; i < 20; i++)
    good += s[i]->err.kind == ERR_NONE && s[i]->results == 1;
  is_num (good, 19, "nineteen of twenty end well although a process died under them");
  is_str (culprit->err.code, "runner-crash", "the one that kills is found");
  ok (culprit->err.kind == ERR_UNAVAILABLE, "and ends UNAVAILABLE");

  nseen = 0;
  memset (seen, 0, sizeof seen);
  until (is_up, c);
  culprit = ask_for (c, "crash", "poison", true, 8000);
  for (int i = 1; i < 6; i++)
    s[i] = ask_for (c, "later", "", false, 8000);
  settle ();
  d = child_describe (c);
  is_str (culprit->err.code, "runner-crash", "asked again it dies again");
  for (int i = 2; i < 6; i++)
    ok (s[i]->err.kind == ERR_NONE && s[i]->pid == s[1]->pid, "but in a process of its own");
  is_num (json_i64 (d, "restarts", -1), 1, "the others' process lives on");
  stop (c);
  no_child_left ("a replay");
}

static void
test_stop (void)
{
  struct child *c = start ("", 8, 0);
  struct seen *warm = ask (c, "echo"), *m, *h, *q;
  int64_t began;

  settle ();
  (void) warm;
  m = ask_for (c, "later", "", true, 5000);
  h = ask_for (c, "hold", "", false, 5000);
  turns (3);
  child_stop (c);
  q = ask (c, "echo");
  settle ();
  ok (m->err.kind == ERR_NONE, "a stop lets a mutation finish");
  ok (h->err.kind == ERR_UNAVAILABLE && q->err.kind == ERR_UNAVAILABLE && !q->sent,
      "the rest ends UNAVAILABLE");
  until (is_stopped, c);
  child_free (c);

  c = start ("", 8, 0);
  warm = ask (c, "echo");
  settle ();
  m = ask_for (c, "stall", "", true, 5000);
  turns (3);
  began = clock_boot_ms ();
  child_stop (c);
  ok (until (is_stopped, c) && clock_boot_ms () - began >= times.stop,
      "one that does not end is killed after a while");
  settle ();
  ok (m->err.kind == ERR_UNKNOWN, "its mutation is UNKNOWN");
  child_free (c);
  turns (2);
  no_child_left ("a forced stop");
}

static void
set (void *ctx)
{
  *(bool *) ctx = true;
}

static bool
is_set (void *ctx)
{
  return *(bool *) ctx;
}

static void
free_it (void *ctx, uint32_t id, const struct call_result *r)
{
  (void) id, (void) r;
  child_free (*(struct child **) ctx);
}

static void
test_all_stop (void)
{
  struct child *a = start ("", 8, 0), *b = start ("", 8, 0), *c = start ("mute", 8, 0);
  struct child_call want = { .call = "echo", .deadline_ms = 3000, .on_result = free_it, .ctx = &a };
  bool stopped = false;

  until (is_up, b);
  child_call (a, &want);
  child_call (a, &want);
  until (is_up, b);
  turns (20);
  supervisor_stop (sup, set, &stopped);
  ok (until (is_set, &stopped), "the supervisor says when all have stopped");
  no_child_left ("the supervisor's stop");
  child_free (b);
  child_free (c);
}

int
main (void)
{
  const char *dir = getenv ("GPUB_BUILDDIR");
  struct err e = ERR_INIT;

  alarm (120);
  snprintf (program, sizeof program, "%s/bad-child", dir ? dir : ".");
  log_level (getenv ("VERBOSE") ? LOG_DEBUG : LOG_WARNING);
  loop = loop_new (&e);
  sup = supervisor_new (loop, &times, &e);
  loop_each (loop, flush, NULL);
  test_good ();
  test_ack ();
  test_crash ();
  test_lies ();
  test_start ();
  test_overdue ();
  test_held ();
  test_hung ();
  test_quarantine ();
  test_parallel ();
  test_slow_reader ();
  test_flood ();
  test_replay ();
  test_stop ();
  test_all_stop ();
  supervisor_free (sup);
  loop_free (loop);
  return done ();
}
