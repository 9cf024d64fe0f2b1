/* filter.c - FILTER: what is refused and how, what comes back spelled out */
#include "config.h"

#include <stdlib.h>

#include "core/filter.h"
#include "core/json.h"
#include "tests/unit/tap.h"

static json_t *
js (const char *text)
{
  AUTO_FREE char *copy = strdup (text);
  json_t *j;

  for (char *p = copy; *p; p++)
    if (*p == '\'')
      *p = '"';
  j = json_loads (copy, JSON_DECODE_ANY, NULL);
  if (!j) {
    printf ("Bail out! bad JSON in a test: %s\n", text);
    exit (1);
  }
  return j;
}

static void
refused (const char *text, const char *want)
{
  AUTO_JSON json_t *j = js (text);
  struct err e = ERR_INIT;
  struct filter f;

  if (ok (filter_parse (&f, j, MARKET_ON_DEMAND, &e) < 0, "refused: %s", text))
    is_str (e.text, want, "... with its reason");
  else
    filter_done (&f);
}

static void
spelled (const char *text, const char *want)
{
  AUTO_JSON json_t *j = js (text), *back = NULL;
  AUTO_FREE char *got = NULL;
  struct err e = ERR_INIT;
  struct filter f, g;

  if (!ok (filter_parse (&f, j, MARKET_ANY, &e) == 0, "taken: %s %s", text, e.text))
    return;
  back = filter_json (&f);
  got = json_canonical (back);
  is_str (got, want, "... and spelled out");
  ok (filter_parse (&g, back, MARKET_ON_DEMAND, &e) == 0, "... which is a filter again");
  filter_done (&g);
  filter_done (&f);
}

int
main (void)
{
  struct err e = ERR_INIT;
  struct filter f;

  refused ("7", "a filter must be an object");
  refused ("{'max_prize_udollar':1}",
           "filter: unknown member 'max_prize_udollar', did you mean 'max_price_udollar'?");
  refused ("{'vcpus':'8'}", "filter: 'vcpus' must be an integer");
  refused ("{'vcpus':-8}", "'vcpus' must be between 0 and 100000000");
  refused ("{'gpu':'H100'}", "filter: 'gpu' must be an array");
  refused ("{'gpu':['H100']}", "an entry of 'gpu' must be an object with 'model'");
  refused ("{'gpu':[{}]}", "gpu: 'model' is missing");
  refused ("{'gpu':[{'model':'H100','count':2}]}", "gpu: unknown member 'count'");
  refused ("{'gpu':[{'model':'H1OO'}]}", "no GPU model is called 'H1OO', did you mean 'H100'?");
  refused ("{'gpu':[{'model':'banana-split'}]}", "no GPU model is called 'banana-split'");
  refused ("{'gpu':[{'model':'H100','min':0}]}", "'min' of a gpu must be between 1 and 1024");
  refused ("{'gpu':[{'model':'H100','min':4,'max':2}]}",
           "'max' of a gpu must be 0 (no bound) or at least its 'min'");
  refused ("{'market':'spott'}", "'market' must be \"on-demand\", \"spot\" or \"any\"");
  refused ("{'kind':'container'}", "'kind' must be \"vm\", \"baremetal\" or \"any\"");
  refused ("{'arch':'sparc'}", "'arch' must be \"x86_64\" or \"aarch64\"");
  refused ("{'min_driver':'new'}", "'min_driver' must be a version such as \"550.90\"");
  refused ("{'region':[1]}", "'region' must be a list of names");
  refused ("{'exclude':['']}", "'exclude' must be a list of names");
  refused ("{'max_price_udollar':-1}", "'max_price_udollar' is -1: micro-dollars, 0 to 1000000000000");
  refused ("{'max_price_udollar':9223372036854775807}",
           "'max_price_udollar' is 9223372036854775807: micro-dollars, 0 to 1000000000000");
  refused ("{'max_price_per':'hour'}", "'max_price_per' must be \"machine\" or \"gpu\"");

  spelled ("{}", "{\"kind\":\"any\",\"market\":\"any\"}");
  spelled ("{'gpu':[{'model':'nvidia h100 80gb "
           "hbm3'},{'model':'L4/8','min':2,'max':0},{'model':'ANY'},{'model':'none'}],"
           "'arch':'arm64','market':'spot','max_price_udollar':5}",
           "{\"arch\":\"aarch64\",\"gpu\":[{\"max\":1,\"min\":1,\"model\":\"H100-80GB-SXM\"},"
           "{\"max\":0,\"min\":2,\"model\":\"L4/8\"},{\"max\":1,\"min\":1,\"model\":\"any\"},"
           "{\"max\":1,\"min\":1,\"model\":\"none\"}],\"kind\":\"any\",\"market\":\"spot\",\"max_"
           "price_udollar\":5}");
  ok (filter_parse (&f, NULL, MARKET_SPOT, &e) == 0 && f.market == MARKET_SPOT && !f.gpu_said &&
          f.max_price_udollar == UINT64_MAX && f.max_cost_udollar == UINT64_MAX,
      "no filter has the defaults");
  filter_done (&f);

  is_num (driver_number ("570.86.15"), 570086, "570.86.15");
  is_num (driver_number ("570"), 570000, "570");
  ok (driver_number ("570.133") > driver_number ("570.86"), "570.133 is newer than 570.86");
  is_num (driver_number ("x"), 0, "no version");
  is_num (driver_number (NULL), 0, "none at all");
  return done ();
}
