/* host_encode.c - structs of plugins older, newer and worse than this host, as JSON */
#include "config.h"

#include "sdk/host/host.h"
#include "tests/unit/tap.h"

static void
is_json (json_t *got, const char *want, const char *name)
{
  AUTO_FREE char *text = got ? json_dumps (got, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

  is_str (text, want, name);
  json_decref (got);
}

static void
test_offer (void)
{
  struct gpub_offer o = { .size = sizeof o,
                          .known = GPUB_OFFER_PRICE | GPUB_OFFER_GPUS | GPUB_OFFER_CAPS,
                          .offer_ref = "a",
                          .gpu_count = 0,
                          .price_udollar = 0,
                          .vcpus = 8,
                          .caps = GPUB_CAP_SPOT | GPUB_CAP_HOSTS_KUBERNETES | 1ull << 60 };

  is_json (encode_offer (&o, NULL),
           "{\"availability\":\"unknown\",\"caps\":[\"spot\",\"hosts-kubernetes\"],\"gpu_count\":0,"
           "\"gpu_denominator\":0,\"kind\":\"vm\",\"market\":\"on-demand\",\"offer_ref\":\"a\","
           "\"price_udollar\":0}",
           "known zeros are there, unknown numbers are not, foreign bits are dropped");
}

/* A newer plugin's struct: one member more, which this host must not mind. */
static void
test_grown (void)
{
  struct {
    struct gpub_offer o;
    uint64_t later;
  } grown = { .o = { .size = sizeof grown, .offer_ref = "a" }, .later = 77 };
  struct {
    struct gpub_resource r;
    uint64_t later;
  } disks[2] = {
    { .r = { .size = sizeof disks[0], .kind = "disk", .id = "d0", .billable = 1 } },
    { .r = { .size = sizeof disks[0], .kind = "disk", .id = "d1", .billable = 1 } },
  };
  struct gpub_machine m = { .size = sizeof m,
                            .id = "m",
                            .state = GPUB_STATE_RUNNING,
                            .resources = &disks[0].r,
                            .nresources = 2,
                            .resources_stride = sizeof disks[0] };
  AUTO_JSON json_t *offer = encode_offer (&grown.o, NULL), *machine = encode_machine (&m, NULL);
  const json_t *second = json_array_get (json_object_get (machine, "resources"), 1);

  ok (offer != NULL, "a grown offer");
  is_str (json_string_value (json_object_get (second, "id")), "d1",
          "the stride walks grown elements");
}

static void
test_old (void)
{
  struct gpub_machine m = { .size = offsetof (struct gpub_machine, raw_state),
                            .id = "m",
                            .state = GPUB_STATE_GONE,
                            .raw_state = (const char *) 1,
                            .ntags = 5 };

  is_json (encode_machine (&m, NULL), "{\"fail_kind\":\"ok\",\"id\":\"m\",\"state\":\"gone\"}",
           "nothing beyond an old struct's size is read");
}

static void
test_text (void)
{
  char buf[16];
  size_t len = 0;
  AUTO_FREE char *text = base64_encode ("a\0b", 3);
  AUTO_FREE char *back = base64_decode (text, &len, NULL);
  AUTO_JSON json_t *cut = text_json ("ab\xc3\xa4", 3);

  is_str (json_string_value (cut), "ab\xef\xbf\xbd", "a cut sequence is replaced, not kept broken");
  text_copy (buf, sizeof buf, "a\nb\x1f\xff", 100);
  is_str (buf, "a b \xef\xbf\xbd", "controls become spaces");
  ok (!text_is_utf8 ("\xc0\x80", 2) && !text_is_utf8 ("\xed\xa0\x80", 3) &&
          !text_is_utf8 ("a\0", 2) && text_is_utf8 ("\xf0\x9f\x98\x80", 4) &&
          !text_is_utf8 ("\xf5\x80\x80\x80", 4),
      "overlong forms, surrogates, NUL and > U+10FFFF are no UTF-8");
  ok (len == 3 && memcmp (back, "a\0b", 3) == 0, "base64 there and back");
  ok (base64_decode ("abc", &len, NULL) == NULL, "bad base64");
}

static void
test_refused (void)
{
  struct gpub_resource r = { .size = sizeof r, .kind = "disk", .id = "" };
  struct gpub_offer o = { .size = sizeof o, .offer_ref = "caf\xc3\xa9" };
  struct err e = ERR_INIT;

  ok (!encode_resource (&r, &e), "a resource without id: %s", e.text);
  ok (!encode_offer (&o, &e), "an offer_ref that is not printable ASCII: %s", e.text);
}

int
main (void)
{
  test_offer ();
  test_grown ();
  test_old ();
  test_text ();
  test_refused ();
  return done ();
}
