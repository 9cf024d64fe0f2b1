/* ssh_args.c - what a CALL of the daemon asks for: where, as whom, and what */
#include "config.h"

#include <string.h>

#include "core/json.h"
#include "join/ssh_args.h"

enum { TOKEN_MAX = 64 * 1024 };

static const struct json_member target_members[] = {
  { "host", JSON_STRING, true },
  { "port", JSON_INTEGER, false },
  { "users", JSON_ARRAY, true },
  { "hostkey", JSON_STRING, false },
};

/* A user name goes to sshd alone, yet nothing odd ever belongs in one. */
static bool
is_user (const char *s)
{
  return s && *s && strlen (s) <= 32 &&
         s[strspn (s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == '\0';
}

static int
read_target (struct ssh_args *a, const json_t *target, struct err *e)
{
  const char *pin;
  json_t *user;
  size_t i;

  if (!json_is_object (target))
    return err_set (e, ERR_INVALID, "'target' must be an object");
  if (json_check (target, target_members, N_ELEMENTS (target_members), e) < 0)
    return err_add (e, "target");
  a->host = json_str (target, "host", "");
  a->port = (int) json_i64 (target, "port", 22);
  json_array_foreach (json_object_get (target, "users"), i, user) {
    if (!is_user (json_string_value (user)))
      return err_set (e, ERR_INVALID, "target: user %zu is no user name", i);
    if (a->nusers < ARGS_USERS_MAX)
      a->users[a->nusers++] = json_string_value (user);
  }
  if (a->nusers == 0)
    return err_set (e, ERR_INVALID, "target: 'users' is empty");
  pin = json_str (target, "hostkey", "");
  a->hostkey = *pin ? pin : NULL;
  return 0;
}

static int
read_run (struct ssh_args *a, json_t *args, const char *token, size_t token_len, struct err *e)
{
  json_t *params = json_object_get (args, "params");
  const char *hash = json_str (args, "hash", "");

  if (!json_is_object (params)) {
    params = json_object ();
    json_object_set_new (args, "params", params);
  }
  json_object_del (params, "NOW_MS"); /* set when it is sent, and no part of what names a run */
  a->run = (struct script_run){ .script = json_str (args, "script", ""),
                                .params = params,
                                .hash = hash };
  if (!*hash) {
    script_hash (a->run.script, params, a->hash);
    a->run.hash = a->hash;
  }
  if (token) {
    if (token_len == 0 || token_len > TOKEN_MAX || memchr (token, '\0', token_len))
      return err_set (e, ERR_INVALID, "the token is empty, too long or has a NUL");
    a->run.token = a->token = strndup (token, token_len);
  }
  return script_check (&a->run, e);
}

static int
read_kind (const char *name, enum ssh_kind *kind)
{
  static const char *const names[] = {
    [SSH_PROBE] = "probe", [SSH_LOG] = "log", [SSH_KUBECONFIG] = "kubeconfig", [SSH_RUN] = "run"
  };

  for (size_t i = 0; i < N_ELEMENTS (names); i++)
    if (strcmp (name, names[i]) == 0) {
      *kind = (enum ssh_kind) i;
      return 0;
    }
  return -1;
}

int
ssh_args_read (struct ssh_args *a, const json_t *body, const char *token, size_t token_len,
               struct err *e)
{
  const char *name = json_str (body, "call", "");
  json_t *args;

  a->body = json_deep_copy (body);
  args = json_object_get (a->body, "args");
  if (read_kind (name, &a->kind) < 0)
    return err_set (e, ERR_UNSUPPORTED, "the ssh runner has no call '%.40s'", name);
  if (read_target (a, json_object_get (args, "target"), e) < 0)
    return -1;
  return a->kind == SSH_RUN ? read_run (a, args, token, token_len, e) : 0;
}

void
ssh_args_done (struct ssh_args *a)
{
  if (a->token)
    explicit_bzero (a->token, strlen (a->token));
  free (a->token);
  json_decref (a->body);
}
