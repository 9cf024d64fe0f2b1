/* aws_parts.c - signatures, XML, credential files, types, prices, errors, tokens of AWS; no traffic
 */
#include "config.h"

#include "plugins/aws/aws.h"
#include "tests/unit/tap.h"

/* ---- Signatures: the published suite's keys and moment, checked with botocore, too ---- */

static const struct keys suite = { .id = "AKIDEXAMPLE",
                                   .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
#define MOMENT 1440938160000 /* 2015-08-30T12:36:00Z */

static void
check_signature (const char *name, const struct sign *s, const struct keys *k, const char *want)
{
  char date[SIGN_DATE_SIZE], got[SIGN_AUTHORIZATION_SIZE];

  sign_date (MOMENT, date);
  is_str (date, "20150830T123600Z", "the date");
  sign_v4 (s, k, date, got);
  is_str (got, want, name);
}

#define CREDENTIAL(region, service)                                                                \
 "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/" region "/" service "/aws4_request, "

static void
test_published (void)
{
  static const struct gpub_kv two[] = { { "host", "example.amazonaws.com" },
                                        { "x-amz-date", "20150830T123600Z" } };
  static const struct gpub_kv three[] = { { "content-type", "application/x-www-form-urlencoded" },
                                          { "host", "example.amazonaws.com" },
                                          { "x-amz-date", "20150830T123600Z" } };
  struct sign s = { "GET", "/", "us-east-1", "service", two, 2, "", 0 };

  check_signature (
      "get-vanilla", &s, &suite,
      CREDENTIAL ("us-east-1",
                  "service") "SignedHeaders=host;x-amz-date, Signature="
                             "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  s.method = "POST";
  check_signature (
      "post-vanilla", &s, &suite,
      CREDENTIAL ("us-east-1",
                  "service") "SignedHeaders=host;x-amz-date, Signature="
                             "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
  s = (struct sign){ "POST", "/", "us-east-1", "service", three, 3, "Param1=value1", 13 };
  check_signature (
      "post-x-www-form-urlencoded", &s, &suite,
      CREDENTIAL (
          "us-east-1",
          "service") "SignedHeaders=content-type;host;x-amz-date, "
                     "Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
}

static void
test_services (void)
{
  static const struct gpub_kv ec2[] = {
    { "content-type", "application/x-www-form-urlencoded; charset=utf-8" },
    { "host", "ec2.eu-west-1.amazonaws.com" },
    { "x-amz-date", "20150830T123600Z" },
    { "x-amz-security-token", "session/Token+1==" },
  };
  static const struct gpub_kv ssm[] = {
    { "content-type", "application/x-amz-json-1.1" },
    { "host", "127.0.0.1:5055" },
    { "x-amz-date", "20150830T123600Z" },
    { "x-amz-target", "AmazonSSM.GetParameter" },
  };
  const char *query = "Action=DescribeRegions&Version=2016-11-15", *json = "{\"Name\":\"/a\"}";
  const struct sign one = { "POST", "/", "eu-west-1", "ec2", ec2, 4, query, strlen (query) },
                    two = { "POST", "/", "us-east-1", "ssm", ssm, 4, json, strlen (json) };

  check_signature (
      "a session token", &one, &suite,
      CREDENTIAL (
          "eu-west-1",
          "ec2") "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature="
                 "772c475575abcb62ea621e058b717111582dd27ca5390e9fb19db810f8182cfb");
  check_signature (
      "a target", &two, &suite,
      CREDENTIAL ("us-east-1",
                  "ssm") "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="
                         "bed2f12e20b523964814e7a49b3ec083d034b110cd9a8744383c87d57ff710a1");
}

/* ---- XML ---- */

static json_t *
xml (const char *text)
{
  char root[XML_NAME_MAX];

  return xml_parse (text, strlen (text), root);
}

static void
test_xml (void)
{
  json_auto_t *j = xml (
      "<?xml version=\"1.0\"?><R xmlns=\"http://x/\"><a>1 &amp; 2</a><set><item><b>x</b></item>"
      "<item><b>y</b></item></set><none/><texts><item>p</item></texts></R>");
  const json_t *set = json_object_get (j, "set");

  is_str (json_str (j, "a", ""), "1 & 2", "a text");
  is_num ((int64_t) json_array_size (set), 2, "rows");
  is_str (json_str (json_array_get (set, 1), "b", ""), "y", "a member of a row");
  is_str (json_str (j, "none", "?"), "", "an empty set is no array");
  is_str (json_string_value (json_array_get (json_object_get (j, "texts"), 0)), "p",
          "a row of text");
}

static void
test_bad_xml (void)
{
  static const char *const bad[] = {
    "",
    "text",
    "{\"a\":1}",
    "<a>",
    "<a><b></a></b>",
    "<a>&undefined;</a>",
    "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
    "<!DOCTYPE a [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><a>&b;</a>",
    "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>",
    "<a><b>1</b><b>2</b></a>",
    "<a><item>1</item><b>2</b></a>",
    "<a>\xff\xfe</a>",
  };
  AUTO_FREE char *deep = calloc (1, 2000);

  for (size_t i = 0; i < N_ELEMENTS (bad); i++) {
    json_auto_t *j = xml (bad[i]);

    ok (j == NULL, "no document we know, %zu", i);
  }
  for (int i = 0; i < 100; i++)
    strcat (deep, "<a>");
  for (int i = 0; i < 100; i++)
    strcat (deep, "</a>");
  ok (xml (deep) == NULL, "too deep");
}

/* ---- Files ---- */

static void
test_ini (void)
{
  static const char text[] =
      "# a comment\n[default]\naws_access_key_id = ONE\naws_secret_access_key=a/b+c=d\n"
      "[profile gpu]\n  nested = no\nregion = eu-west-1 ; and why\n[ spaced ]\nkey =  v v \r\n"
      "[default]\naws_access_key_id = TWO";
  char out[32] = "";

  ok (ini_get (text, "default", "aws_access_key_id", out, sizeof out), "a key");
  is_str (out, "TWO", "of which the last counts");
  ok (ini_get (text, "default", "aws_secret_access_key", out, sizeof out), "a secret");
  is_str (out, "a/b+c=d", "with = in it");
  ok (ini_get (text, "profile gpu", "region", out, sizeof out), "a profile of the config file");
  is_str (out, "eu-west-1", "without the comment");
  ok (ini_get (text, "spaced", "key", out, sizeof out), "spaces around");
  is_str (out, "v v", "are cut");
  ok (!ini_get (text, "profile gpu", "nested", out, sizeof out),
      "an indented line is of another setting");
  ok (!ini_get (text, "gpu", "region", out, sizeof out), "another section");
  ok (!ini_get (text, "default", "region", out, sizeof out), "a key of another section");
  ok (!ini_get (text, "profile gpu", "region", out, 4), "what does not fit is not cut");
  ok (!ini_get ("", "default", "region", out, sizeof out), "an empty file");
}

static void
test_documents (void)
{
  struct keys k;
  json_auto_t *good = json_pack ("{s:s, s:s, s:s, s:s}", "AccessKeyId", "ASIA", "SecretAccessKey",
                                 "s", "Token", "t", "Expiration", "2026-11-30T10:00:00Z"),
              *process = json_pack ("{s:s, s:s, s:s}", "AccessKeyId", "ASIA", "SecretAccessKey",
                                    "s", "SessionToken", "u"),
              *never = json_pack ("{s:s, s:s, s:s}", "AccessKeyId", "A", "SecretAccessKey", "s",
                                  "Expiration", "soon"),
              *half = json_pack ("{s:s}", "AccessKeyId", "A");

  ok (keys_of_json (good, &k), "keys of a machine's role");
  is_num (k.expires_ms, 1796032800000, "and their end");
  ok (keys_of_json (process, &k) && strcmp (k.token, "u") == 0 && k.expires_ms == 0,
      "keys of a process, without an end");
  ok (!keys_of_json (never, &k), "an end that is no time");
  ok (!keys_of_json (half, &k), "half of a pair");
}

/* ---- Types ---- */

static json_t *
type_row (const char *name, const char *gpu, const char *count, const char *mib, const char *part)
{
  json_t *row = json_pack ("{s:s, s:{s:[s]}, s:[s, s], s:{s:s}, s:{s:s}}", "instanceType", name,
                           "processorInfo", "supportedArchitectures", "x86_64",
                           "supportedUsageClasses", "on-demand", "spot", "vCpuInfo", "defaultVCpus",
                           "4", "memoryInfo", "sizeInMiB", "16384");

  if (gpu)
    json_object_set_new (row, "gpuInfo",
                         json_pack ("{s:[{s:s, s:s, s:{s:s}, s:s}]}", "gpus", "name", gpu, "count",
                                    count, "memoryInfo", "sizeInMiB", mib, "gpuPartitionSize",
                                    part));
  return row;
}

static void
test_types (void)
{
  static const struct {
    const char *name, *gpu, *count, *mib, *part;
    const char *want;
    uint32_t gpus, denominator;
    uint64_t vram;
  } rows[] = {
    { "g5.xlarge", "A10G", "1", "22888", "", "A10G", 1, 0, 24576 },
    { "g6e.xlarge", "L40S", "1", "45776", "", "L40S", 1, 0, 49152 },
    { "p5en.48xlarge", "NVIDIA", "8", "144384", "", "H200", 8, 0, 144384 },
    { "p5.4xlarge", "H100", "0", "81920", "", "H100", 1, 0, 81920 },
    { "p5.48xlarge", "H100", "8", "81920", "", "H100", 8, 0, 81920 },
    { "g6f.large", "L4", "0", "2861", "0.125", "L4", 1, 8, 3072 },
    { "g9f.large", "X1", "0", "8192", "0.25", "X1", 1, 4, 8192 },
    { "t3.large", NULL, NULL, NULL, NULL, NULL, 0, 0, 0 },
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    json_auto_t *row =
        type_row (rows[i].name, rows[i].gpu, rows[i].count, rows[i].mib, rows[i].part);
    struct type t;

    ok (type_read (row, &t) && t.gpus == rows[i].gpus && t.denominator == rows[i].denominator &&
            t.vram_mib == rows[i].vram &&
            (rows[i].want ? t.gpu && strcmp (t.gpu, rows[i].want) == 0 : !t.gpu) && t.vcpus == 4 &&
            t.on_demand && t.spot && !t.metal,
        "%s", rows[i].name);
  }
}

static void
test_odd_types (void)
{
  struct type t;
  json_auto_t *none = json_object (), *unknown = type_row ("x9.large", "B900", "0", "1", ""),
              *many = type_row ("x9.large", "B900", "100000", "1", ""),
              *name = type_row ("x9|large", NULL, NULL, NULL, NULL);

  ok (!type_read (none, &t), "nothing");
  ok (!type_read (unknown, &t), "a GPU of which nobody says how many");
  ok (!type_read (many, &t), "too many");
  ok (!type_read (name, &t), "a name that would break a reference");
}

/* ---- Prices ---- */

#define PRODUCT(attributes, unit, usd)                                                             \
 "{\"product\":{\"attributes\":{" attributes "}},\"terms\":{\"OnDemand\":{\"a\":{"                 \
 "\"priceDimensions\":{\"b\":{\"unit\":\"" unit "\",\"pricePerUnit\":{\"USD\":\"" usd "\"}}}}}}}"

static void
test_prices (void)
{
  static const struct {
    const char *text;
    uint64_t want; /* 0: no price */
  } rows[] = {
    { PRODUCT ("\"instanceType\":\"p5.48xlarge\",\"marketoption\":\"OnDemand\"", "Hrs",
               "55.0400000000"),
      55040000 },
    { PRODUCT ("\"instanceType\":\"g5.xlarge\"", "Hrs", "1.006"), 1006000 },
    { PRODUCT ("\"instanceType\":\"p5.48xlarge\",\"marketoption\":\"CapacityBlock\"", "Hrs",
               "0.336"),
      0 },
    { PRODUCT ("\"instanceType\":\"g5.xlarge\"", "Hrs", "0.0000000000"), 0 },
    { PRODUCT ("\"instanceType\":\"g5.xlarge\"", "Quantity", "1.0"), 0 },
    { PRODUCT ("\"instanceType\":\"g5.xlarge\"", "Hrs", "-1"), 0 },
    { PRODUCT ("\"instanceType\":\"g5.xlarge\",\"tenancy\":\"Dedicated\"", "Hrs", "1.1"), 0 },
    { PRODUCT ("\"instanceType\":\"g5.xlarge\",\"operatingSystem\":\"Windows\"", "Hrs", "1.1"), 0 },
    { PRODUCT ("\"other\":\"g5.xlarge\"", "Hrs", "1.0"), 0 },
    { "[[[[[[[[[[[[[[[[[[[[[[[[", 0 },
    { "", 0 },
  };
  char type[FIELD_MAX];
  uint64_t price;

  for (size_t i = 0; i < N_ELEMENTS (rows); i++) {
    bool known = product_price (rows[i].text, type, &price);

    ok (known == (rows[i].want > 0) && (!known || price == rows[i].want), "product %zu", i);
  }
  ok (product_gib_price (PRODUCT ("\"volumeApiName\":\"gp3\"", "GB-Mo", "0.0800000000"), &price) &&
          price == 110,
      "a GiB for an hour is rounded up");
  ok (!product_gib_price (PRODUCT ("\"volumeApiName\":\"gp2\"", "GB-Mo", "0.1"), &price),
      "another disk");
}

static void
test_spot (void)
{
  json_auto_t *zones = json_pack ("[s,s]", "r-a", "r-b"), *none = json_array (),
              *free_ = json_pack ("[s]", "r-d");
  struct prices p = { .spot = json_pack ("{s:{s:{s:i},s:{s:i},s:{s:i}}}", "t", "r-a", "price", 30,
                                         "r-b", "price", 20, "r-c", "price", 10) };
  uint64_t price;

  ok (price_spot (&p, "t", zones, &price) && price == 20,
      "the cheapest of the zones that can be had");
  ok (!price_spot (&p, "t", none, &price), "no zone, no price");
  ok (!price_spot (&p, "t", free_, &price), "a zone without a price");
  ok (!price_spot (&p, "u", zones, &price), "another type");
  prices_done (&p);
}

/* ---- Words ---- */

static void
test_codes (void)
{
  static const struct {
    const char *code;
    int status;
    bool change;
    int32_t want;
  } rows[] = {
    { "InsufficientInstanceCapacity", 500, true, GPUB_E_CAPACITY },
    { "Unsupported", 400, true, GPUB_E_CAPACITY },
    { "VcpuLimitExceeded", 400, true, GPUB_E_QUOTA },
    { "RequestLimitExceeded", 503, true, GPUB_E_RATE_LIMITED },
    { "AuthFailure", 401, true, GPUB_E_AUTH },
    { "RequestExpired", 400, false, GPUB_E_AUTH },
    { "IdempotentParameterMismatch", 400, true, GPUB_E_CONFLICT },
    { "InvalidInstanceID.NotFound", 400, false, GPUB_E_NOT_FOUND },
    { "InvalidParameterValue", 400, true, GPUB_E_INVALID },
    { "InternalError", 500, true, GPUB_E_UNKNOWN },
    { "InternalError", 500, false, GPUB_E_UNAVAILABLE },
    { "Unavailable", 400, true, GPUB_E_UNKNOWN },
    { "SomethingNew", 400, true, GPUB_E_INVALID },
    { "SomethingNew", 503, true, GPUB_E_UNKNOWN },
    { "", 403, false, GPUB_E_AUTH },
    { "", 302, true, GPUB_E_UNAVAILABLE },
  };

  for (size_t i = 0; i < N_ELEMENTS (rows); i++)
    is_num (code_kind (rows[i].code, rows[i].status, rows[i].change), rows[i].want,
            *rows[i].code ? rows[i].code : "no code");
}

static void
test_skew (void)
{
  const struct gpub_kv date = { "date", "Mon, 30 Nov 2026 10:00:00 GMT" },
                       junk = { "date", "yesterday" };
  struct gpub_http_response r = { .size = sizeof r, .headers = &date, .nheaders = 1 };
  int64_t seconds = 0, then = 1796032800000;

  ok (!clock_skew (&r, then + 60000, &seconds), "a minute is no skew");
  ok (clock_skew (&r, then + 600000, &seconds) && seconds == 600, "ten minutes ahead");
  ok (clock_skew (&r, then - 600000, &seconds) && seconds == -600, "ten minutes behind");
  r.headers = &junk;
  ok (!clock_skew (&r, then + 600000, &seconds), "no date, no skew");
  r.nheaders = 0;
  ok (!clock_skew (&r, then, &seconds), "no header");
}

static void
test_names (void)
{
  static const char *const bad[] = { "",
                                     "||",
                                     "us-east-1",
                                     "us-east-1|g5.xlarge",
                                     "us-east-1|g5.xlarge|cheap",
                                     "us-east-1||spot",
                                     "us east|g5.xlarge|spot",
                                     "evil.com/|g5.xlarge|spot",
                                     "us-east-1|g5.xlarge|spot|" };
  char region[FIELD_MAX], type[FIELD_MAX], one[FIELD_MAX + 1], two[FIELD_MAX + 1];
  uint32_t market;

  ok (ref_parse ("us-east-1|g5.xlarge|spot", region, type, &market) && market == GPUB_MARKET_SPOT,
      "a reference is read");
  is_str (type, "g5.xlarge", "its type");
  for (size_t i = 0; i < N_ELEMENTS (bad); i++)
    ok (!ref_parse (bad[i], region, type, &market), "no reference, %zu", i);
  ok (id_valid ("i-0abc", "i-") && !id_valid ("i-", "i-") && !id_valid ("i-0/..", "i-") &&
          !id_valid ("vol-0abc", "i-") && !id_valid (NULL, "i-"),
      "ids");
  zone_token ("tok", "us-east-1a", one);
  zone_token ("tok", "us-east-1b", two);
  ok (strlen (one) == 64 && strcmp (one, two) != 0, "each zone has a token of its own");
  zone_token ("tok", "us-east-1a", two);
  is_str (two, one, "and always the same");
}

static void
test_query (void)
{
  AUTO_QUERY struct query q = query_new ("DescribeInstances");

  query_filter (&q, "tag:a", "b c");
  query_or (&q, "+/=~");
  query_filter (&q, "state", "x");
  query_int (&q, "MaxResults", 5);
  is_str (q.text,
          "Action=DescribeInstances&Filter.1.Name=tag%3Aa&Filter.1.Value.1=b+c&Filter.1.Value.2=%"
          "2B%2F%3D~"
          "&Filter.2.Name=state&Filter.2.Value.1=x&MaxResults=5",
          "a query");
}

int
main (void)
{
  test_published ();
  test_services ();
  test_xml ();
  test_bad_xml ();
  test_ini ();
  test_documents ();
  test_types ();
  test_odd_types ();
  test_prices ();
  test_spot ();
  test_codes ();
  test_skew ();
  test_names ();
  test_query ();
  return done ();
}
