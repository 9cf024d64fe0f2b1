/* offers_print.c - OFFER as text: the part that was rendered when it was listed, then price and age
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/offers_int.h"

static void
append (struct offers_out *out, const char *bytes, size_t len)
{
  if (out->len + len + 1 > out->cap) {
    out->cap = (out->len + len + 1) * 2;
    out->at = realloc (out->at, out->cap);
    if (!out->at)
      abort ();
  }
  memcpy (out->at + out->len, bytes, len);
  out->len += len;
  out->at[out->len] = '\0';
}

static int
print_price (char *out, size_t size, const struct offer_at *a, uint64_t price)
{
  const struct offer *x = a->hot;
  unsigned long long all = price, ip = a->text->price_ip_udollar;
  unsigned long long disk = price - x->price_udollar, machine = x->price_udollar - ip;
  int n;

  if (price == OFFER_NO_PRICE)
    return 0;
  n = snprintf (out, size, ",\"price_udollar\":%llu", all);
  if (x->gpus)
    n += snprintf (out + n, size - (size_t) n, ",\"price_gpu_udollar\":%llu", all / x->gpus);
  n += snprintf (out + n, size - (size_t) n, ",\"price_parts\":{\"machine_udollar\":%llu", machine);
  if (disk)
    n += snprintf (out + n, size - (size_t) n, ",\"disk_udollar\":%llu", disk);
  if (ip)
    n += snprintf (out + n, size - (size_t) n, ",\"ip_udollar\":%llu", ip);
  return n + snprintf (out + n, size - (size_t) n, "}");
}

void
offers_print (const struct offers *o, const struct offer_at *a, uint32_t disk_gib, int64_t now_ms,
              struct offers_out *out)
{
  int64_t age = now_ms - (int64_t) a->hot->seen_s * 1000;
  char tail[320];
  int n = print_price (tail, sizeof tail, a, offers_price (o, a->hot, disk_gib));

  age = age < 0 ? 0 : age;
  n += snprintf (tail + n, sizeof tail - (size_t) n, ",\"age_ms\":%lld,\"stale\":%s}",
                 (long long) age, age >= o->conf.stale_ms ? "true" : "false");
  append (out, a->text->json, a->text->json_len);
  append (out, tail, (size_t) n);
}

json_t *
offers_json (const struct offers *o, const struct offer_at *a, uint32_t disk_gib, int64_t now_ms)
{
  struct offers_out out = { NULL, 0, 0 };
  json_t *j;

  offers_print (o, a, disk_gib, now_ms, &out);
  j = json_loadb (out.at, out.len, 0, NULL);
  free (out.at);
  return j;
}
