/* shadeform_parts.c - names of seats, words of refusals, instances as machines; no traffic */
#include "config.h"

#include <string.h>

#include "plugins/shadeform/shadeform.h"
#include "tests/unit/tap.h"

static void
test_seat (void)
{
  static const char *const bad[] = {
    "", "a", "a|b|c", "a|b|c|spot", "|b|c|spot|", "a|b|c|spot|i|x", "a|b|c||i", "a\n|b|c|spot|i"
  };
  char ref[REF_MAX + 1], longest[700];
  struct seat seat, other;

  ok (seat_parse ("hyperstack|montreal-canada-2|H100x2|spot|ubuntu22.04", &seat),
      "a reference is read");
  is_str (seat.type, "H100x2", "its type");
  is_str (seat.image, "ubuntu22.04", "its image");
  ok (seat_is_spot (&seat), "its market");
  ok (seat_print (&seat, ref), "and is printed");
  is_str (ref, "hyperstack|montreal-canada-2|H100x2|spot|ubuntu22.04", "to the same bytes");
  ok (seat_parse ("a|b|c|on_demand|", &other), "an image may be left open");
  ok (!seat_same (&seat, &other), "seats differ");
  for (size_t i = 0; i < N_ELEMENTS (bad); i++)
    ok (!seat_parse (bad[i], &seat), "'%s' is refused", bad[i]);
  memset (longest, 'a', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  ok (!seat_parse (longest, &seat), "a reference that is too long is refused");
}

static void
test_catalog (void)
{
  json_auto_t *row =
      json_loads ("{\"cloud\":\"c\",\"shade_instance_type\":\"t\",\"hourly_price\":205}", 0, NULL);
  json_auto_t *on_demand = json_loads ("{\"region\":\"r\",\"rental_type\":\"on_demand\"}", 0, NULL);
  json_auto_t *old = json_loads ("{\"region\":\"r\"}", 0, NULL);
  json_auto_t *spot = json_loads (
      "{\"region\":\"r\",\"rental_type\":\"spot\",\"hourly_price\":\"0.985\"}", 0, NULL);
  json_auto_t *free_spot = json_loads ("{\"region\":\"r\",\"rental_type\":\"spot\"}", 0, NULL);
  json_auto_t *untyped =
      json_loads ("{\"region\":\"r\",\"rental_type\":null,\"hourly_price\":\"0.5\"}", 0, NULL);
  json_auto_t *piped = json_loads ("{\"region\":\"r|x\"}", 0, NULL);
  json_auto_t *images =
      json_loads ("[null,\"ubuntu22.04\",\"ubuntu22.04_cuda12.6_shade_os\",7]", 0, NULL);
  json_auto_t *wish = json_loads ("[\"nothing\",\"ubuntu22.04\"]", 0, NULL), *none = json_array ();
  struct shadeform s = { .images = none };
  struct seat seat;
  uint64_t price = 0;

  ok (seat_read (&seat, row, on_demand) && seat_price (&seat, row, on_demand, &price),
      "on demand has a price");
  is_num ((int64_t) price, 2050000, "cents of the whole machine");
  ok (seat_read (&seat, row, old) && !seat_is_spot (&seat),
      "without a rental type it is on demand");
  ok (seat_read (&seat, row, spot) && seat_price (&seat, row, spot, &price),
      "spot has its own price");
  is_num ((int64_t) price, 985000, "decimal dollars");
  ok (seat_read (&seat, row, free_spot) && !seat_price (&seat, row, free_spot, &price),
      "spot never takes the other price");
  ok (!seat_read (&seat, row, untyped), "a price of its own and no type: left out");
  ok (!seat_read (&seat, row, piped), "a name that cannot be referred to: left out");
  is_str (image_choose (&s, images), "ubuntu22.04_cuda12.6_shade_os",
          "an image with a driver is preferred");
  s.images = wish;
  is_str (image_choose (&s, images), "ubuntu22.04", "unless the operator says otherwise");
  ok (image_choose (&s, none) == NULL, "no image is left to the cloud");
  is_num (seat_availability (old), GPUB_AVAIL_UNKNOWN, "unsaid stock is unknown");
}

static void
test_words (void)
{
  is_num (plug_kind_of_text ("OUT_OF_STOCK"), GPUB_E_CAPACITY, "the code of no stock");
  is_num (plug_kind_of_text ("Insufficient capacity in region"), GPUB_E_CAPACITY,
          "insufficient capacity is no money matter");
  is_num (plug_kind_of_text ("Insufficient balance, add funds"), GPUB_E_QUOTA, "out of money");
  is_num (plug_kind_of_text ("Instance quota exceeded"), GPUB_E_QUOTA, "the account's limit");
  is_num (plug_kind_of_text ("ssh key name must be unique"), GPUB_OK, "words that say neither");
}

/* ---- instances, through a host that keeps what it is given ---- */

static struct gpub_machine got;
static char got_tags[256], got_address[64], got_fail[64];

static int32_t
keep (struct gpub_call *call, const struct gpub_machine *m)
{
  (void) call;
  got = *m;
  got_tags[0] = '\0';
  for (uint64_t i = 0; i < m->ntags; i++) {
    strcat (got_tags, m->tags[i].key);
    strcat (strcat (got_tags, ":"), m->tags[i].value);
    strcat (got_tags, ";");
  }
  snprintf (got_address, sizeof got_address, "%s", m->address ? m->address : "none");
  snprintf (got_fail, sizeof got_fail, "%s", m->fail_text ? m->fail_text : "none");
  return GPUB_OK;
}

static void
emit (const char *text)
{
  struct gpub_host host = { .size = sizeof host, .emit_machine = keep };
  struct shadeform s = { .host = &host };
  struct ctx c = { .s = &s };
  json_auto_t *j = json_loads (text, 0, NULL);

  ok (j && instance_emit (&c, j) == GPUB_OK, "emitted: %.60s", text);
}

static void
test_instance (void)
{
  emit ("{\"id\":\"x\",\"ip\":null,\"ssh_port\":null,\"status\":\"pending_provider\",\"tags\":[\"a="
        "b=c\",\"mine\",null,\"=x\",\"k=\"]}");
  is_num (got.state, GPUB_STATE_CREATING, "pending is creating");
  is_str (got_address, "none", "no address yet");
  is_str (got_tags, "a:b=c;k:;", "tags are split once; others are left out");
  emit ("{\"id\":\"x\",\"status\":\"active\",\"ip\":\"h.example\",\"ssh_port\":null,\"hourly_"
        "price\":500,"
        "\"rental_terms\":{\"rental_type\":\"spot\",\"hourly_price\":\"3.20\"},\"cost_estimate\":"
        "\"1.5\","
        "\"auto_delete\":{\"date_threshold\":\"1970-01-01T00:00:02Z\"}}");
  is_num (got.state, GPUB_STATE_RUNNING, "active is running");
  is_str (got_address, "h.example", "an address may be a name");
  is_num (got.ssh_port, 22, "a null port is 22");
  is_num ((int64_t) got.price_udollar, 3200000, "a spot machine pays the spot price");
  is_num ((int64_t) got.spent_udollar, 1500000, "spent");
  is_num (got.not_after_ms, 2000, "kill switch");
  emit ("{\"id\":\"x\",\"status\":\"active\",\"hourly_price\":500,\"rental_terms\":{\"rental_"
        "type\":\"spot\"}}");
  ok (!(got.known & GPUB_MACHINE_PRICE), "a spot machine never shows the on-demand price");
  emit ("{\"id\":\"x\",\"status\":\"active\",\"hourly_price\":500}");
  is_num ((int64_t) got.price_udollar, 5000000, "an old answer has cents alone");
  emit ("{\"id\":\"x\",\"status\":\"deleting\",\"status_details\":\"preempted\"}");
  is_num (got.state, GPUB_STATE_DELETING, "deleting");
  is_num (got.fail_kind, GPUB_E_CAPACITY, "reclaimed for want of capacity");
  is_str (got_fail, "preempted", "and says so");
  emit ("{\"id\":\"x\",\"status\":\"error\",\"status_details\":\"Out of stock\"}");
  is_num (got.state, GPUB_STATE_ERROR, "error");
  is_num (got.fail_kind, GPUB_E_CAPACITY, "refused after it was accepted");
  emit ("{\"id\":\"x\",\"status\":\"hibernating\"}");
  is_num (got.state, GPUB_STATE_UNKNOWN, "a new status is unknown, not an error");
  ok (!id_valid ("a/../b") && !id_valid ("") && !id_valid ("x?y") && id_valid ("5b1f6f0e-8a6d"),
      "only ids fit into a path");
}

int
main (void)
{
  test_seat ();
  test_catalog ();
  test_words ();
  test_instance ();
  return done ();
}
