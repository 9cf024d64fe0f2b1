/* bad.h - a provider that does nothing, well; each file beside this one breaks one thing of it
 *
 * Define GPUB_NAME, include this, write the calls that differ, and end with BAD_ENTRY (.create =
 * ..., ).
 */
#ifndef GPUB_TESTS_BAD_H
#define GPUB_TESTS_BAD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpubroker/provider.h>

#pragma GCC diagnostic ignored "-Woverride-init" /* that is how a test overrides one call */
#ifdef __clang__
# pragma GCC diagnostic ignored "-Winitializer-overrides"
#endif
#define UNUSED __attribute__ ((__unused__))

static const struct gpub_host *host UNUSED;

UNUSED static int32_t
bad_open (const struct gpub_host *h, struct gpub_call *call UNUSED,
          const struct gpub_config *conf UNUSED, void **self, struct gpub_error *err UNUSED)
{
  host = h;
  *self = NULL;
  return GPUB_OK;
}

UNUSED static void
bad_close (void *self UNUSED)
{
}

UNUSED static int32_t
bad_probe (void *self UNUSED, struct gpub_call *call UNUSED, struct gpub_identity *id,
           struct gpub_error *err UNUSED)
{
  snprintf (id->account, sizeof id->account, "bad");
  return GPUB_OK;
}

UNUSED static int32_t
bad_list_offers (void *self UNUSED, struct gpub_call *call, const struct gpub_offer_query *q UNUSED,
                 struct gpub_error *err UNUSED)
{
  return host->scope_done (call, "bad", GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
}

UNUSED static int32_t
bad_create (void *self UNUSED, struct gpub_call *call, const struct gpub_create *args,
            struct gpub_error *err UNUSED)
{
  struct gpub_machine m = {
    .size = sizeof m, .id = "bad-1", .scope = "bad", .name = args->name, .state = GPUB_STATE_RUNNING
  };

  return host->emit_machine (call, &m);
}

UNUSED static int32_t
bad_get (void *self UNUSED, struct gpub_call *call UNUSED, const struct gpub_ref *ref UNUSED,
         struct gpub_error *err UNUSED)
{
  return GPUB_E_NOT_FOUND;
}

UNUSED static int32_t
bad_find (void *self UNUSED, struct gpub_call *call, const struct gpub_find *find UNUSED,
          struct gpub_error *err UNUSED)
{
  return host->scope_done (call, "bad", GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
}

UNUSED static int32_t
bad_list (void *self UNUSED, struct gpub_call *call, struct gpub_error *err UNUSED)
{
  return host->scope_done (call, "bad", GPUB_SCOPE_COMPLETE, GPUB_OK, NULL);
}

UNUSED static int32_t
bad_remove (void *self UNUSED, struct gpub_call *call UNUSED, const struct gpub_ref *ref UNUSED,
            struct gpub_error *err UNUSED)
{
  return GPUB_OK;
}

#define BAD_ENTRY(...)                                                                             \
 const struct gpub_provider *gpub_provider_entry (uint32_t abi UNUSED)                             \
 {                                                                                                 \
  static const struct gpub_provider p = { .size = sizeof p,                                        \
                                          .abi = GPUB_ABI,                                         \
                                          .name = GPUB_NAME,                                       \
                                          .version = "0",                                          \
                                          .max_parallel = 4,                                       \
                                          .open = bad_open,                                        \
                                          .close = bad_close,                                      \
                                          .probe = bad_probe,                                      \
                                          .list_offers = bad_list_offers,                          \
                                          .create = bad_create,                                    \
                                          .get = bad_get,                                          \
                                          .find = bad_find,                                        \
                                          .list = bad_list,                                        \
                                          .remove = bad_remove,                                    \
                                          __VA_ARGS__ };                                           \
  return &p;                                                                                       \
 }

#endif
