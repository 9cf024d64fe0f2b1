/* refuse.c - AWS's error codes, and the clock
 *
 * The code decides, not the status: no stock is a 500 and throttling is a 503.
 */
#include "config.h"

#include <locale.h>
#include <string.h>
#include <time.h>

#include "plugins/aws/aws.h"

static const struct plug_word codes[] = {
  { "InsufficientInstanceCapacity", GPUB_E_CAPACITY },
  { "InsufficientHostCapacity", GPUB_E_CAPACITY },
  { "InsufficientCapacity", GPUB_E_CAPACITY },
  { "InsufficientCapacityOnHost", GPUB_E_CAPACITY },
  { "InsufficientReservedInstanceCapacity", GPUB_E_CAPACITY },
  { "InsufficientFreeAddressesInSubnet", GPUB_E_CAPACITY },
  { "ReservationCapacityExceeded", GPUB_E_CAPACITY },
  { "UnfulfillableCapacity", GPUB_E_CAPACITY },
  { "SpotMaxPriceTooLow", GPUB_E_CAPACITY },
  { "Unsupported", GPUB_E_CAPACITY }, /* the type is not in that zone */
  { "VcpuLimitExceeded", GPUB_E_QUOTA },
  { "InstanceLimitExceeded", GPUB_E_QUOTA },
  { "MaxSpotInstanceCountExceeded", GPUB_E_QUOTA },
  { "VolumeLimitExceeded", GPUB_E_QUOTA },
  { "MaxFleetCountExceeded", GPUB_E_QUOTA },
  { "AddressLimitExceeded", GPUB_E_QUOTA },
  { "SecurityGroupLimitExceeded", GPUB_E_QUOTA },
  { "RulesPerSecurityGroupLimitExceeded", GPUB_E_QUOTA },
  { "RequestLimitExceeded", GPUB_E_RATE_LIMITED },
  { "Throttling", GPUB_E_RATE_LIMITED },
  { "ThrottlingException", GPUB_E_RATE_LIMITED },
  { "ThrottledException", GPUB_E_RATE_LIMITED },
  { "RequestThrottled", GPUB_E_RATE_LIMITED },
  { "RequestThrottledException", GPUB_E_RATE_LIMITED },
  { "EC2ThrottledException", GPUB_E_RATE_LIMITED },
  { "SlowDown", GPUB_E_RATE_LIMITED },
  { "TooManyRequestsException", GPUB_E_RATE_LIMITED },
  { "BandwidthLimitExceeded", GPUB_E_RATE_LIMITED },
  { "PriorRequestNotComplete", GPUB_E_RATE_LIMITED },
  { "InvalidInstanceID.NotFound", GPUB_E_NOT_FOUND },
  { "InvalidSpotInstanceRequestID.NotFound", GPUB_E_NOT_FOUND },
  { "InvalidVolume.NotFound", GPUB_E_NOT_FOUND },
  { "ParameterNotFound", GPUB_E_NOT_FOUND },
  { "InvalidAMIID.NotFound", GPUB_E_NOT_FOUND },
  { "InvalidGroup.NotFound", GPUB_E_UNAVAILABLE }, /* made a moment ago */
  { "InvalidSecurityGroupID.NotFound", GPUB_E_UNAVAILABLE },
  { "IncorrectInstanceState", GPUB_E_UNAVAILABLE },
  { "IdempotentParameterMismatch", GPUB_E_CONFLICT },
  { "IdempotentInstanceTerminated", GPUB_E_CONFLICT },
  { "InvalidGroup.Duplicate", GPUB_E_CONFLICT },
  { "InvalidPermission.Duplicate", GPUB_E_CONFLICT },
  { "AuthFailure", GPUB_E_AUTH },
  { "AuthFailure.ServiceLinkedRoleCreationNotPermitted", GPUB_E_AUTH },
  { "UnauthorizedOperation", GPUB_E_AUTH },
  { "AccessDenied", GPUB_E_AUTH },
  { "AccessDeniedException", GPUB_E_AUTH },
  { "InvalidClientTokenId", GPUB_E_AUTH },
  { "UnrecognizedClientException", GPUB_E_AUTH },
  { "InvalidSignatureException", GPUB_E_AUTH },
  { "SignatureDoesNotMatch", GPUB_E_AUTH },
  { "IncompleteSignature", GPUB_E_AUTH },
  { "RequestExpired", GPUB_E_AUTH },
  { "RequestTimeTooSkewed", GPUB_E_AUTH },
  { "ExpiredToken", GPUB_E_AUTH },
  { "ExpiredTokenException", GPUB_E_AUTH },
  { "MissingAuthenticationToken", GPUB_E_AUTH },
  { "MissingAuthenticationTokenException", GPUB_E_AUTH },
  { "OptInRequired", GPUB_E_AUTH },
  { "PendingVerification", GPUB_E_AUTH },
  { "Blocked", GPUB_E_AUTH },
};

int32_t
code_kind (const char *code, int status, bool change)
{
  static const char *const server[] = { "InternalError",  "InternalFailure",
                                        "Unavailable",    "ServiceUnavailable",
                                        "RequestTimeout", "InternalServerError" };
  uint32_t kind = plug_word (codes, N_ELEMENTS (codes), code, UINT32_MAX);

  if (kind != UINT32_MAX)
    return (int32_t) kind;
  for (size_t i = 0; i < N_ELEMENTS (server); i++)
    if (strcmp (code, server[i]) == 0)
      return plug_kind_of_status (500, change);
  if (status == 404) /* EC2 has 400 and a code for what is gone: this is a proxy, or no such API */
    return plug_kind_of_status (503, change);
  return plug_kind_of_status (status, change);
}

bool
clock_skew (const struct gpub_http_response *r, int64_t now_ms, int64_t *seconds)
{
  enum { TOLERATED_S = 4 * 60 };
  struct tm tm = { 0 };

  for (uint64_t i = 0; i < r->nheaders; i++)
    if (strcmp (r->headers[i].key, "date") == 0 &&
        strptime (r->headers[i].value, "%a, %d %b %Y %H:%M:%S GMT", &tm)) {
      *seconds = now_ms / 1000 - (int64_t) timegm (&tm);
      return *seconds > TOLERATED_S || *seconds < -TOLERATED_S;
    }
  return false;
}
