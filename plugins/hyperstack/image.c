/* image.c - which image a machine gets
 *
 * Names carry versions and change with them, so the rule looks at words: a GPU machine needs the
 * driver that "R570 CUDA 12.8" names, a machine without GPU does not want it.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "plugins/hyperstack/hyperstack.h"

/* Only what is hard forbids; a soft restriction is advice. */
static bool
allowed (const json_t *image, const struct flavor *f)
{
  const json_t *limits = json_object_get (image, "flavor_restrictions"), *flavor;
  size_t i;

  if (strcmp (json_str (limits, "restriction_type", ""), "hard") != 0)
    return true;
  json_array_foreach (json_object_get (limits, "compatible_flavors"), i, flavor)
    if (strcmp (json_str (flavor, "flavor_name", ""), f->name) == 0)
      return true;
  return false;
}

/* The images of a region that this flavor may run; visit returns true to stop there. */
static const char *
each (const json_t *groups, const struct flavor *f, bool (*visit) (void *, const char *name),
      void *arg)
{
  const json_t *group, *image;
  size_t i, k;

  json_array_foreach (groups, i, group)
    json_array_foreach (json_object_get (group, "images"), k, image) {
      const char *region = json_str (image, "region_name", json_str (group, "region_name", ""));
      const char *name = json_str (image, "name", "");

      if (*name && strcmp (region, f->region) == 0 && allowed (image, f) && visit (arg, name))
        return name;
    }
  return NULL;
}

static bool
is_it (void *arg, const char *name)
{
  return strcmp (arg, name) == 0;
}

bool
image_offered (const json_t *groups, const struct flavor *f, const char *wanted)
{
  return each (groups, f, is_it, (void *) (uintptr_t) wanted) != NULL;
}

/* "R570" as a word of its own. */
bool
image_driver (const char *image, char driver[static 16])
{
  for (const char *p = image; (p = strstr (p, " R")); p++) {
    size_t n = strspn (p + 2, "0123456789.");

    if (n > 0 && n < 16 && (p[2 + n] == ' ' || p[2 + n] == '\0')) {
      snprintf (driver, 16, "%.*s", (int) n, p + 2);
      return true;
    }
  }
  return false;
}

struct best {
  bool gpu;
  long driver;
  const char *name;
};

static long
driver_number (const char *name)
{
  char driver[16];

  return image_driver (name, driver) ? strtol (driver, NULL, 10) : 0;
}

/* The newest driver, then the plain image (the broker brings its own container runtime), then the
 * newest release. */
static bool
better (void *arg, const char *name)
{
  struct best *b = arg;
  long driver = driver_number (name);
  bool docker = strcasestr (name, "docker"), was_docker;

  if (strncmp (name, "Ubuntu Server ", 14) != 0 || (driver > 0) != b->gpu)
    return false;
  was_docker = b->name && strcasestr (b->name, "docker");
  if (!b->name || driver > b->driver ||
      (driver == b->driver && (docker != was_docker ? was_docker : strcmp (name, b->name) > 0))) {
    b->name = name;
    b->driver = driver;
  }
  return false;
}

const char *
image_choose (const struct hyperstack *s, const json_t *groups, const struct flavor *f)
{
  struct best best = { .gpu = f->gpus > 0 };
  const json_t *wish;
  size_t i;

  json_array_foreach (s->images, i, wish)
    if (image_offered (groups, f, json_string_value (wish)))
      return json_string_value (wish);
  each (groups, f, better, &best);
  return best.name;
}
