/* nebius_parts.c - frames, ends, refusals, assertions, seats, states, user data of Nebius; no
 * traffic
 */
#include "config.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "plugins/nebius/nebius.h"
#include "tests/unit/tap.h"

/* ---- Frames ---- */

static void
test_frames (void)
{
  static const struct {
    const char *bytes;
    size_t len;
    bool good;
  } rows[] = {
    { "", 0, false },
    { "\0\0\0\0", 4, false },
    { "\0\0\0\0\0", 5, true },
    { "\1\0\0\0\0", 5, false }, /* compressed */
    { "\0\0\0\0\2ab", 7, true },
    { "\0\0\0\0\2a", 6, false },        /* cut */
    { "\0\0\0\0\1ab", 7, false },       /* and more */
    { "\0\xff\xff\xff\xff", 5, false }, /* a length beyond everything */
  };
  Nb__ById in = NB__BY_ID__INIT;
  AUTO_MSG Nb__ById *back = NULL;
  size_t len, n;
  const char *why;
  AUTO_FREE uint8_t *frame = NULL;
  const uint8_t *message;

  for (size_t i = 0; i < N_ELEMENTS (rows); i++)
    ok ((grpc_message (rows[i].bytes, rows[i].len, &n, &why) != NULL) == rows[i].good, "frame %zu",
        i);
  in.id = (char *) (uintptr_t) "abc";
  frame = grpc_frame (&in.base, &len);
  ok (len == 10 && memcmp (frame, "\0\0\0\0\5\x0a\3abc", 10) == 0, "a message in its frame");
  message = grpc_message (frame, len, &n, &why);
  back = (Nb__ById *) (void *) grpc_unpack (&nb__by_id__descriptor, message, n);
  is_str (back ? back->id : NULL, "abc", "and back");
}

/* Two bytes of an answer become a whole struct: millions of them must not. */
static void
test_bound (void)
{
  size_t len = 8 << 20;
  AUTO_FREE uint8_t *bytes = malloc (len);

  for (size_t i = 0; i < len; i += 2)
    memcpy (bytes + i, "\x0a\0", 2);
  ok (!grpc_unpack (&nb__instances__descriptor, bytes, len), "four million rows are refused");
  {
    AUTO_MSG ProtobufCMessage *few = grpc_unpack (&nb__instances__descriptor, bytes, 2000);

    is_num (few ? (int64_t) ((Nb__Instances *) (void *) few)->n_items : -1, 1000, "a thousand not");
  }
}

static void
test_text (void)
{
  static const struct {
    const char *text, *want;
  } rows[] = { { "100%25 %C3%BC", "100% \xc3\xbc" },
               { "%", "%" },
               { "%4", "%4" },
               { "%zz", "%zz" },
               { "a%00b", "a%00b" },
               { "%41%42", "AB" } };
  static const struct {
    const char *text, *want; /* NULL: refused */
  } base64[] = { { "", "" },       { "YQ", "a" },         { "YQ==", "a" },
                 { "YWI", "ab" },  { "YWJj", "abc" },     { "Y", NULL },
                 { "Y Q=", NULL }, { "__8", "\xff\xff" }, { "//8=", "\xff\xff" },
                 { "=", "" } };
  char text[64];

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    snprintf (text, sizeof text, "%s", rows[i].text);
    percent_decode (text);
    is_str (text, rows[i].want, rows[i].text);
  }
  for (size_t i = 0; i < N_ELEMENTS (base64); i++) {
    size_t len = 0;
    AUTO_FREE uint8_t *got = base64_decode (base64[i].text, &len);

    ok (base64[i].want
            ? got && len == strlen (base64[i].want) && memcmp (got, base64[i].want, len) == 0
            : !got,
        "base64 '%s'", base64[i].text);
  }
}

/* ---- Ends ---- */

static void
test_ends (void)
{
  static const struct gpub_kv only[] = { { "content-type", "application/grpc" },
                                         { "grpc-status", "12" } };
  static const struct gpub_kv head[] = { { "grpc-status", "5" } };
  static const struct gpub_kv tail[] = { { "grpc-status", "8" },
                                         { "grpc-message", "too%20fast" },
                                         { "grpc-status-details-bin", "CAg" },
                                         { "grpc-retry-pushback-ms", "1500" } };
  static const char *const bad[] = { "", "x", "-1", "5 ", "99999" };
  struct gpub_http_response r = { .headers = only, .nheaders = 2 };
  struct grpc_end end;

  grpc_end_read (&end, &r);
  is_num (end.code, GRPC_UNIMPLEMENTED, "an answer of one header block");
  r = (struct gpub_http_response){
    .headers = head, .nheaders = 1, .trailers = tail, .ntrailers = 4
  };
  grpc_end_read (&end, &r);
  is_num (end.code, GRPC_RESOURCE_EXHAUSTED, "trailers come before headers");
  is_str (end.message, "too fast", "its message");
  ok (end.details_len == 2 && memcmp (end.details, "\x08\x08", 2) == 0, "its details");
  is_num (end.retry_after_ms, 1500, "its delay");
  grpc_end_done (&end);
  r = (struct gpub_http_response){ .status = 200 };
  grpc_end_read (&end, &r);
  is_num (end.code, -1, "no status is none");
  for (size_t i = 0; i < N_ELEMENTS (bad); i++) {
    const struct gpub_kv kv[] = { { "grpc-status", bad[i] } };

    r = (struct gpub_http_response){ .trailers = kv, .ntrailers = 1 };
    grpc_end_read (&end, &r);
    is_num (end.code, -1, bad[i]);
  }
}

/* ---- Refusals ---- */

static struct refusal
refuse (int code, const char *message, const ProtobufCMessage *detail, const char *type,
        bool change)
{
  uint8_t bytes[256];
  Nb__Any any = NB__ANY__INIT, *list[] = { &any };
  Nb__Status status = NB__STATUS__INIT;
  struct refusal r;

  if (detail) {
    any.type_url = (char *) (uintptr_t) type;
    any.value.data = bytes;
    any.value.len = protobuf_c_message_pack (detail, bytes);
    status.n_details = 1;
    status.details = list;
  }
  refusal_read (&r, code, message, &status, change);
  return r;
}

static void
test_refusals (void)
{
  static const struct {
    int code;
    const char *message;
    int32_t read, change;
  } rows[] = {
    { GRPC_UNAUTHENTICATED, "", GPUB_E_AUTH, GPUB_E_AUTH },
    { GRPC_PERMISSION_DENIED, "", GPUB_E_AUTH, GPUB_E_AUTH },
    { GRPC_NOT_FOUND, "", GPUB_E_NOT_FOUND, GPUB_E_NOT_FOUND },
    { GRPC_INVALID_ARGUMENT, "", GPUB_E_INVALID, GPUB_E_INVALID },
    { GRPC_ALREADY_EXISTS, "", GPUB_E_UNAVAILABLE, GPUB_E_CONFLICT },
    { GRPC_UNAVAILABLE, "", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
    { GRPC_INTERNAL, "", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
    { GRPC_RESOURCE_EXHAUSTED, "", GPUB_E_RATE_LIMITED, GPUB_E_CAPACITY },
    { GRPC_RESOURCE_EXHAUSTED, "Quota limit exceeded", GPUB_E_RATE_LIMITED, GPUB_E_QUOTA },
    { GRPC_FAILED_PRECONDITION, "not enough capacity", GPUB_E_UNAVAILABLE, GPUB_E_CAPACITY },
    { 17, "", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
    { 999, "", GPUB_E_UNAVAILABLE, GPUB_E_UNKNOWN },
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    is_num (refuse (rows[i].code, rows[i].message, NULL, NULL, false).kind, rows[i].read, "a read");
    is_num (refuse (rows[i].code, rows[i].message, NULL, NULL, true).kind, rows[i].change,
            "a change");
  }
}

static void
test_details (void)
{
  static const char own[] = "type.googleapis.com/nebius.common.v1.ServiceError";
  Nb__ServiceError e = NB__SERVICE_ERROR__INIT;
  Nb__Violation v = NB__VIOLATION__INIT, *list[] = { &v };
  Nb__Violations some = NB__VIOLATIONS__INIT;
  Nb__RetryInfo retry = NB__RETRY_INFO__INIT;
  Nb__Duration delay = NB__DURATION__INIT;
  struct refusal r;

  e.code = (char *) (uintptr_t) "OutOfIt";
  v.what = (char *) (uintptr_t) "gpu.h100";
  v.message = (char *) (uintptr_t) "no room";
  some.n_violations = 1;
  some.violations = list;
  e.not_enough_resources = &some;
  r = refuse (GRPC_INTERNAL, "x", &e.base, own, true);
  is_num (r.kind, GPUB_E_CAPACITY, "the cloud's own word beats the code");
  is_str (r.code, "OutOfIt", "its code");
  is_str (r.text, "gpu.h100: no room", "its text");
  r = refuse (GRPC_RESOURCE_EXHAUSTED, "x", &e.base,
              "a.b/nebius.common.error.v1alpha1.ServiceError", false);
  is_num (r.kind, GPUB_E_CAPACITY, "under its old name, too");
  r = refuse (GRPC_RESOURCE_EXHAUSTED, "x", &e.base, "a.b/google.rpc.ErrorInfo", false);
  is_num (r.kind, GPUB_E_RATE_LIMITED, "another type says nothing");
  e.not_enough_resources = NULL;
  e.quota_failure = &some;
  is_num (refuse (GRPC_RESOURCE_EXHAUSTED, "x", &e.base, own, true).kind, GPUB_E_QUOTA, "a quota");
  e.quota_failure = NULL;
  is_num (refuse (GRPC_NOT_FOUND, "x", &e.base, own, true).kind, GPUB_E_NOT_FOUND,
          "one without details leaves the code");
  delay.seconds = 2;
  delay.nanos = 500000000;
  retry.retry_delay = &delay;
  r = refuse (GRPC_RESOURCE_EXHAUSTED, "x", &retry.base, "t/google.rpc.RetryInfo", true);
  ok (r.kind == GPUB_E_RATE_LIMITED && r.retry_after_ms == 2500, "a delay means: too fast");
  delay.seconds = INT64_MAX;
  r = refuse (GRPC_RESOURCE_EXHAUSTED, "x", &retry.base, "t/google.rpc.RetryInfo", true);
  is_num (r.kind, GPUB_E_CAPACITY, "an absurd one is none");
}

static void
test_operations (void)
{
  Nb__Operation op = NB__OPERATION__INIT;
  Nb__Status status = NB__STATUS__INIT;
  struct refusal r;

  ok (!operation_over (&op, &r) && r.kind == GPUB_OK, "without a status it runs");
  op.status = &status;
  ok (operation_over (&op, &r) && r.kind == GPUB_OK, "an empty status is a good end");
  status.code = GRPC_RESOURCE_EXHAUSTED;
  ok (operation_over (&op, &r) && r.kind == GPUB_E_CAPACITY, "a code is a bad one");
}

/* ---- Assertions ---- */

static char *
credentials (EVP_PKEY *key)
{
  BIO *bio = BIO_new (BIO_s_mem ());
  json_auto_t *j = NULL;
  char *pem, *out;
  long n;

  PEM_write_bio_PKCS8PrivateKey (bio, key, NULL, NULL, 0, NULL, NULL);
  n = BIO_get_mem_data (bio, &pem);
  j = json_pack ("{s:{s:s, s:s, s:s, s:s, s:s%}}", "subject-credentials", "alg", "RS256", "kid",
                 "publickey-e00k", "iss", "serviceaccount-e00a", "sub", "serviceaccount-e00a",
                 "private-key", pem, (size_t) n);
  out = json_dumps (j, 0);
  BIO_free (bio);
  return out;
}

static bool
verify (EVP_PKEY *key, const char *text, size_t len, const char *signature)
{
  EVP_MD_CTX *md = EVP_MD_CTX_new ();
  size_t n = 0;
  AUTO_FREE uint8_t *bytes = base64_decode (signature, &n);
  bool good = bytes && EVP_DigestVerifyInit (md, NULL, EVP_sha256 (), NULL, key) == 1 &&
              EVP_DigestVerify (md, bytes, n, (const unsigned char *) text, len) == 1;

  EVP_MD_CTX_free (md);
  return good;
}

static json_t *
part (const char *text, size_t len)
{
  AUTO_FREE char *copy = strndup (text, len);
  size_t n = 0;
  AUTO_FREE uint8_t *bytes = base64_decode (copy, &n);

  return json_loadb ((const char *) bytes, n, 0, NULL);
}

static void
test_jwt (void)
{
  EVP_PKEY *key = EVP_RSA_gen (2048);
  AUTO_FREE char *file = credentials (key);
  const char *why = NULL;
  AUTO_FREE char *jwt = jwt_make (file, strlen (file), 1800000000, &why);
  const char *one = jwt ? strchr (jwt, '.') : NULL, *two = one ? strchr (one + 1, '.') : NULL;

  if (!ok (two != NULL, "an assertion of three parts"))
    return;
  {
    json_auto_t *head = part (jwt, (size_t) (one - jwt));
    json_auto_t *claims = part (one + 1, (size_t) (two - one - 1));

    is_str (json_str (head, "alg", ""), "RS256", "its algorithm");
    is_str (json_str (head, "kid", ""), "publickey-e00k", "its key");
    is_str (json_str (claims, "iss", ""), "serviceaccount-e00a", "its issuer");
    is_str (json_str (claims, "sub", ""), "serviceaccount-e00a", "its subject");
    is_num (json_i64 (claims, "exp", 0), 1800000060, "its end");
  }
  ok (verify (key, jwt, (size_t) (two - jwt), two + 1), "the public key says that it is genuine");
  ok (!verify (key, jwt, (size_t) (two - jwt) - 1, two + 1), "and nothing else is");
  ok (!jwt_make (file, strlen (file) - 1, 0, &why) && why, "a file that is cut is refused");
  ok (!strpbrk (jwt, "+/= \n"), "it needs no escapes");
  EVP_PKEY_free (key);
}

/* ---- Names ---- */

static void
test_seats (void)
{
  static const char *const bad[] = {
    "", "|||", "p|a|b", "p|a|b|spot", "p|a||on-demand", "p|a b|c|on-demand", "p|a|b|on-demand|"
  };
  static const struct {
    const char *platform, *gpu; /* NULL: none */
  } names[] = {
    { "gpu-h100-sxm", "H100 SXM" },
    { "gpu-b200-sxm-a", "B200 SXM" },
    { "gpu-l40s-d", "L40S" },
    { "gpu-rtx6000", "RTX PRO 6000" },
    { "gpu-rtx6000-a", "RTX PRO 6000" },
    { "gpu-new9", "NEW9" },
    { "cpu-d3", NULL },
    { "gpu-", NULL },
  };
  struct seat seat;
  char ref[REF_MAX], gpu[FIELD_MAX];

  ok (seat_parse ("project-1|gpu-h100-sxm|1gpu|preemptible", &seat) && seat.spot, "a seat is read");
  seat_print (&seat, ref);
  is_str (ref, "project-1|gpu-h100-sxm|1gpu|preemptible", "and printed");
  for (size_t i = 0; i < N_ELEMENTS (bad); i++)
    ok (!seat_parse (bad[i], &seat), "no seat: '%s'", bad[i]);
  for (size_t i = 0; i < N_ELEMENTS (names); i++) {
    bool got = platform_gpu (names[i].platform, gpu);

    ok (got == (names[i].gpu != NULL) && (!got || strcmp (gpu, names[i].gpu) == 0), "%s",
        names[i].platform);
  }
  is_str (platform_arch ("gpu-gb300"), "aarch64", "Grace is ARM");
  is_str (platform_arch ("gpu-b300-sxm"), "x86_64", "B300 is not");
}

/* ---- States ---- */

static void
test_states (void)
{
  enum { NOW = 2000000000 };
  static const struct {
    int state;
    bool reconciling;
    enum operation create;
    int64_t age_s;
    uint32_t want;
  } rows[] = {
    { 1, false, OPERATION_UNKNOWN, 0, GPUB_STATE_CREATING },
    { 4, false, OPERATION_FAILED, 0, GPUB_STATE_RUNNING },
    { 1, false, OPERATION_FAILED, 0, GPUB_STATE_ERROR },
    { 7, false, OPERATION_FAILED, 0, GPUB_STATE_DELETING },
    { 6, true, OPERATION_UNKNOWN, 9999, GPUB_STATE_CREATING },
    { 6, false, OPERATION_RUNS, 9999, GPUB_STATE_CREATING },
    { 6, false, OPERATION_UNKNOWN, 1, GPUB_STATE_CREATING },
    { 6, false, OPERATION_UNKNOWN, 9999, GPUB_STATE_STOPPED },
    { 6, false, OPERATION_DONE, 1, GPUB_STATE_ERROR },
    { 8, false, OPERATION_DONE, 1, GPUB_STATE_ERROR },
    { 77, false, OPERATION_UNKNOWN, 1, GPUB_STATE_UNKNOWN },
    { -1, false, OPERATION_UNKNOWN, 1, GPUB_STATE_UNKNOWN },
  };
  Nb__Instance vm = NB__INSTANCE__INIT;
  Nb__Metadata metadata = NB__METADATA__INIT;
  Nb__Timestamp created = NB__TIMESTAMP__INIT;
  Nb__InstanceStatus status = NB__INSTANCE_STATUS__INIT;

  is_num (instance_state (&vm, OPERATION_DONE, 0), GPUB_STATE_UNKNOWN, "an empty instance");
  vm.metadata = &metadata;
  vm.status = &status;
  metadata.created_at = &created;
  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    status.state = rows[i].state;
    status.reconciling = rows[i].reconciling;
    created.seconds = NOW - rows[i].age_s;
    ok (instance_state (&vm, rows[i].create, 1000ll * NOW) == rows[i].want, "state %zu", i);
  }
}

static void
test_availability (void)
{
  static const struct {
    int state;
    uint32_t available;
    int level;
    uint32_t want;
    int64_t stock;
  } rows[] = {
    { 1, 8, 1, GPUB_AVAIL_AVAILABLE, 8 }, { 1, 0, 1, GPUB_AVAIL_AVAILABLE, -1 },
    { 1, 2, 3, GPUB_AVAIL_LOW, 2 },       { 1, 0, 3, GPUB_AVAIL_NONE, 0 },
    { 1, 0, 4, GPUB_AVAIL_NONE, -1 },     { 2, 5, 2, GPUB_AVAIL_AVAILABLE, -1 },
    { 10, 5, 1, GPUB_AVAIL_UNKNOWN, -1 }, { 1, 3, 99, GPUB_AVAIL_AVAILABLE, 3 },
    { 1, 0, 99, GPUB_AVAIL_UNKNOWN, -1 }, { 0, 0, 0, GPUB_AVAIL_UNKNOWN, -1 },
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    Nb__Availability a = NB__AVAILABILITY__INIT;
    int64_t stock;

    a.data_state = rows[i].state;
    a.available = rows[i].available;
    a.availability_level = rows[i].level;
    ok (availability_of (&a, &stock) == rows[i].want && stock == rows[i].stock, "advice %zu", i);
  }
}

/* ---- User data ---- */

static void
test_user_data (void)
{
  static const char *const keys[] = { "ssh-ed25519 AAAA one\n", "ssh-rsa BBBB \"two\"" };
  struct gpub_create a = { .ssh_public_keys = keys, .nssh_public_keys = 2 };
  const char *why = NULL;
  char big[USER_DATA_MAX];
  char *text = user_data_make (&a, &why);

  is_str (text,
          "#cloud-config\nssh_authorized_keys:\n  - \"ssh-ed25519 AAAA one\"\n  - \"ssh-rsa BBBB "
          "\\\"two\\\"\"\n",
          "keys alone");
  free (text);
  a.user_data_kind = GPUB_DATA_SCRIPT;
  a.user_data = "#!/bin/sh\necho gpubroker-0\n";
  a.user_data_len = strlen (a.user_data);
  text = user_data_make (&a, &why);
  ok (text && strstr (text, "text/x-shellscript") && strstr (text, "boundary=\"gpubroker-1\""),
      "a script beside the keys, under a boundary that it does not hold");
  ok (text && strstr (text, "echo gpubroker-0\n\n--gpubroker-1\n"), "as it was");
  free (text);
  a.user_data = "something else";
  a.user_data_len = strlen (a.user_data);
  ok (!user_data_make (&a, &why) && strstr (why, "first line"), "data of no kind is refused");
  a.user_data = "#!/bin/sh\n\xff";
  a.user_data_len = strlen (a.user_data);
  ok (!user_data_make (&a, &why) && strstr (why, "UTF-8"), "and what is no text");
  memset (big, 'a', sizeof big);
  memcpy (big, "#!", 2);
  a.user_data = big;
  a.user_data_len = sizeof big;
  ok (!user_data_make (&a, &why) && strstr (why, "longer"), "and what is too long");
}

int
main (void)
{
  test_frames ();
  test_bound ();
  test_text ();
  test_ends ();
  test_refusals ();
  test_details ();
  test_operations ();
  test_jwt ();
  test_seats ();
  test_states ();
  test_availability ();
  test_user_data ();
  return done ();
}
