/* table.c - the cases, in their order, and where each one's rule is written */
#include "config.h"

#include "sdk/conform/conform.h"

#define H     "gpubroker/provider.h, "
#define POD   "gpubroker-provider(3), "
#define GUIDE "writing-a-provider.md, "

#define CLOUD NEEDS_CLOUD
#define FAKE  (NEEDS_CONTROL | MAKES)

/* clang-format off */
const struct test_case cases[] = {
  { "table", "the plugin describes itself", H "struct gpub_provider and struct gpub_option", 0, NULL, case_table },
  { "exports", "one exported symbol", H "the first paragraph", 0, NULL, case_exports },
  { "options-missing", "a missing option is named", POD "OPTIONS", 0, NULL, case_options_missing },
  { "options-type", "an option of a wrong type is named", POD "OPTIONS", 0, NULL, case_options_type },
  { "options-odd", "an odd value is taken, or refused by name", POD "OPTIONS", 0, NULL, case_options_odd },
  { "secret-missing", "a missing secret is named", POD "OPTIONS", NEEDS_SECRET, NULL, case_secret_missing },

  { "probe", "the credentials are proven", H "gpub_provider.probe", CLOUD, NULL, case_probe },
  { "wrong-key", "a wrong key is AUTH and proves nothing", H "GPUB_E_AUTH", CLOUD | NEEDS_SECRET, NULL, case_wrong_key },
  { "offers", "offers are whole and of named scopes", H "struct gpub_offer", CLOUD, NULL, case_offers },
  { "requote", "one offer is quoted again", H "gpub_offer_query.offer_ref", CLOUD, NULL, case_requote },
  { "find-nothing", "a search without a find is complete", H "gpub_provider.find", CLOUD, NULL, case_find_nothing },
  { "bad-offer", "an unknown offer makes nothing", H "gpub_create.offer_ref", CLOUD, NULL, case_bad_offer },
  { "price-cap", "a dearer machine is refused", H "gpub_create.max_price_udollar", CLOUD, NULL, case_price_cap },

  { "life", "made, seen, found, listed, removed, gone", GUIDE "The life of a machine", MAKES, NULL, case_life },
  { "create-twice", "the same token makes the same machine", H "GPUB_CAP_IDEMPOTENT_CREATE", MAKES, "idempotent-create", case_create_twice },
  { "other-shape", "the same token for another offer is a conflict", H "GPUB_E_CONFLICT", MAKES, "idempotent-create", case_other_shape },
  { "create-limits", "the longest name and user data are taken", H "struct gpub_create", MAKES, NULL, case_create_limits },
  { "get-unknown", "get of an unknown machine is NOT_FOUND", H "gpub_provider.get", MAKES, NULL, case_get_unknown },
  { "remove-unknown", "remove of an unknown machine is OK", H "gpub_provider.remove", MAKES, NULL, case_remove_unknown },
  { "remove-twice", "remove can be repeated", H "gpub_provider.remove", MAKES, NULL, case_remove_twice },
  { "not-after", "the kill switch is set and moved", H "gpub_create.not_after_ms", MAKES, "kill-switch", case_not_after },
  { "console", "the console is read", H "gpub_provider.console_log", MAKES, "console", case_console },
  { "parallel", "calls at once do not meet", H "gpub_provider.max_parallel", MAKES, NULL, case_parallel },
  { "foreign", "machines of others are left alone", H "gpub_provider.list", FAKE, NULL, case_foreign },

  { "rate-limited", "429 is RATE_LIMITED, with its delay", H "gpub_error.retry_after_ms", FAKE, NULL, case_rate_limited },
  { "refused-key", "401 is AUTH in every call", H "GPUB_E_AUTH", FAKE, NULL, case_refused_key },
  { "no-absence", "a failed list proves no absence", H "GPUB_SCOPE_COMPLETE", FAKE, NULL, case_no_absence },
  { "get-faults", "a failed get is not the end of a machine", H "GPUB_E_NOT_FOUND", FAKE, NULL, case_get_faults },
  { "create-lost", "a create whose answer is lost is UNKNOWN", H "GPUB_E_UNKNOWN", FAKE, NULL, case_create_lost },
  { "create-garbled", "a create whose answer is garbage is UNKNOWN", H "GPUB_E_UNKNOWN", FAKE, NULL, case_create_garbled },
  { "create-timeout", "a create past its deadline is UNKNOWN", H "GPUB_E_UNKNOWN", FAKE, NULL, case_create_timeout },
  { "out-of-stock", "want of stock is CAPACITY", H "GPUB_E_CAPACITY", FAKE, NULL, case_out_of_stock },
  { "late-refusal", "a machine that the cloud gave up is in error", H "GPUB_STATE_ERROR", FAKE, NULL, case_late_refusal },
  { "vanished", "a machine that vanished is gone", H "gpub_provider.get", FAKE, NULL, case_vanished },
  { "remove-lost", "remove is OK only when the machine ends", H "gpub_provider.remove", FAKE, NULL, case_remove_lost },
  { "cancel", "a cancelled call returns within a second", POD "THREADS", FAKE, NULL, case_cancel },
  { "paging", "our machines are found behind 120 others", H "GPUB_SCOPE_COMPLETE", FAKE, NULL, case_paging },
  { "leaks", "many calls leave nothing open", POD "THREADS", CLOUD, NULL, case_leaks },
};
/* clang-format on */
const size_t ncases = N_ELEMENTS (cases);
