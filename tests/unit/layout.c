/* layout.c - the ABI, pinned: a member that moves does not compile */
#include <gpubroker/provider.h>

#include "tests/unit/tap.h"

#define AT(s, f, o) _Static_assert (offsetof (struct s, f) == (o), #s "." #f " moved")

AT (gpub_kv, key, 0);
AT (gpub_kv, value, 8);
AT (gpub_error, http_status, 8);
AT (gpub_error, provider_code, 24);
AT (gpub_error, text, 152);
AT (gpub_provider, abi, 8);
AT (gpub_provider, name, 16);
AT (gpub_provider, options, 40);
AT (gpub_provider, open, 96);
AT (gpub_provider, console_log, 176);
AT (gpub_host, log, 16);
AT (gpub_host, state_put, 112);
AT (gpub_offer, known, 8);
AT (gpub_offer, price_udollar, 160);
AT (gpub_machine, known, 8);
AT (gpub_create, token, 24);

int
main (void)
{
  ok (sizeof (struct gpub_kv) == 16, "kv is two pointers for ever");
  return done ();
}
