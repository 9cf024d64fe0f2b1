/* check.c - what a create is refused for before the cloud is asked */
#include "config.h"

#include "plugins/util.h"

#define USD_FMT    "%llu.%06llu"
#define USD_ARG(u) (unsigned long long) ((u) / 1000000), (unsigned long long) ((u) % 1000000)

int32_t
plug_check_price (const char *what, uint64_t udollar, uint64_t cap, struct gpub_error *err)
{
  if (udollar <= cap)
    return GPUB_OK;
  return plug_error (err, GPUB_E_CAPACITY,
                     "%.150s now costs " USD_FMT " $/h, above the cap of " USD_FMT, what,
                     USD_ARG (udollar), USD_ARG (cap));
}

int32_t
plug_check_user_data (const struct gpub_create *a, uint64_t max, struct gpub_error *err)
{
  if (a->user_data_len <= max)
    return GPUB_OK;
  return plug_error (err, GPUB_E_INVALID, "user data of %llu bytes, at most %llu are taken",
                     (unsigned long long) a->user_data_len, (unsigned long long) max);
}
