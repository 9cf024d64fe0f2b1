/* image.c - which public image boots on a platform, with the driver for its GPUs
 *
 * The cloud says which platforms an image is recommended for and which it refuses; the newest
 * family by name wins.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/nebius/nebius.h"

enum { PAGE = 100, READY = 2, AMD64 = 1, ARM64 = 2, UNKNOWN_STATE = 6 };

static const struct method list_images = { "compute", "nebius.compute.v1.ImageService/ListPublic",
                                           "list images", &nb__images__descriptor };

struct walk {
  int64_t now_s;
  struct images *images;
};

static const char *
arch_of (const Nb__ImageSpec *spec)
{
  if (spec->cpu_architecture == ARM64 || strstr (spec->image_family, "arm64"))
    return "aarch64";
  return "x86_64";
}

static json_t *
refused_by (const Nb__ImageSpec *spec)
{
  json_t *list = json_array ();

  for (size_t i = 0; i < spec->n_unsupported_platforms; i++)
    json_array_append_new (list, json_string (spec->unsupported_platforms[i]->key));
  for (size_t i = 0; i < spec->n_unsupported_presets; i++)
    json_array_append_new (list, json_sprintf ("%s|%s", spec->unsupported_presets[i]->platform,
                                               spec->unsupported_presets[i]->preset));
  return list;
}

/* An image that is not ready, or whose family cannot be ordered by name any more, is left out. */
static bool
is_usable (const Nb__Image *row, int64_t now_s)
{
  const Nb__ImageStatus *st = row->status;
  const Nb__Timestamp *until =
      st && st->image_family_deprecation ? st->image_family_deprecation->deprecated_at : NULL;

  if (!row->spec || !*row->spec->image_family)
    return false;
  if (st && st->state != READY && st->state < UNKNOWN_STATE && st->state != 0)
    return false;
  return !until || until->seconds > now_s;
}

static int32_t
take (void *ctx, const void *page)
{
  const Nb__Images *rows = page;
  const struct walk *w = ctx;

  for (size_t i = 0; i < rows->n_items; i++) {
    const Nb__Image *row = rows->items[i];
    const char *driver = row->metadata ? label_of (row->metadata, "nvidia_gpu_drivers") : NULL;
    int64_t bytes = row->status ? row->status->min_disk_size_bytes : 0;
    json_t *recommended = json_array ();

    for (size_t n = 0; row->spec && n < row->spec->n_recommended_platforms; n++)
      json_array_append_new (recommended, json_string (row->spec->recommended_platforms[n]));
    if (is_usable (row, w->now_s))
      json_array_append_new (w->images->rows,
                             json_pack ("{s:s, s:s, s:s, s:I, s:O, s:o}", "family",
                                        row->spec->image_family, "arch", arch_of (row->spec),
                                        "driver", driver ? driver : "", "min_gib",
                                        (json_int_t) ((bytes + (1 << 30) - 1) >> 30), "recommended",
                                        recommended, "refused", refused_by (row->spec)));
    json_decref (recommended);
  }
  return GPUB_OK;
}

int32_t
images_read (const struct ctx *c, const char *region, struct images *images)
{
  Nb__ListPublicRequest in = NB__LIST_PUBLIC_REQUEST__INIT;
  struct walk w = { c->s->host->now_ms (c->call) / 1000, images };

  images->rows = json_array ();
  in.region = (char *) (uintptr_t) region;
  in.page_size = PAGE;
  return api_pages (c, &list_images, &in, &in.page_token, take, &w);
}

void
images_done (struct images *images)
{
  json_decref (images->rows);
  images->rows = NULL;
}

/* ---- The choice ---- */

static bool
in_list (const json_t *list, const char *word)
{
  const json_t *row;
  size_t i;

  json_array_foreach (list, i, row)
    if (strcmp (json_string_value (row), word) == 0)
      return true;
  return false;
}

static bool
fits (const json_t *image, const char *platform, const char *preset)
{
  char both[2 * FIELD_MAX];

  snprintf (both, sizeof both, "%s|%s", platform, preset);
  return strcmp (json_str (image, "arch", ""), platform_arch (platform)) == 0 &&
         !in_list (json_object_get (image, "refused"), platform) &&
         !in_list (json_object_get (image, "refused"), both);
}

/* A GPU wants its driver; a machine without one takes what has none, if there is that. */
static int
score (const json_t *image, const char *platform)
{
  const char *family = json_str (image, "family", "");
  bool gpu = strncmp (platform, "gpu-", 4) == 0, cuda = strstr (family, "cuda") != NULL;

  return 4 * (strncmp (family, "ubuntu", 6) == 0) + 2 * (gpu == cuda) +
         in_list (json_object_get (image, "recommended"), platform);
}

static bool
better (const json_t *a, const json_t *b, const char *platform)
{
  int diff = b ? score (a, platform) - score (b, platform) : 1;

  if (diff != 0)
    return diff > 0;
  return strverscmp (json_str (a, "family", ""), json_str (b, "family", "")) > 0;
}

static const json_t *
named (const struct images *images, const char *platform, const char *preset, const char *family)
{
  const json_t *image;
  size_t i;

  json_array_foreach (images->rows, i, image)
    if (strcmp (json_str (image, "family", ""), family) == 0 && fits (image, platform, preset))
      return image;
  return NULL;
}

/* Without a driver a GPU machine would fail after it was paid for. */
static const json_t *
best (const struct images *images, const char *platform, const char *preset)
{
  const json_t *image, *found = NULL;
  size_t i;

  json_array_foreach (images->rows, i, image)
    if (fits (image, platform, preset) && better (image, found, platform))
      found = image;
  if (found && strncmp (platform, "gpu-", 4) == 0 &&
      !strstr (json_str (found, "family", ""), "cuda"))
    return NULL;
  return found;
}

const json_t *
image_choose (const struct nebius *s, const struct images *images, const char *platform,
              const char *preset, const char *wanted)
{
  const json_t *family, *image;
  size_t i;

  if (wanted)
    return named (images, platform, preset, wanted);
  json_array_foreach (s->images, i, family)
    if ((image = named (images, platform, preset, json_string_value (family))))
      return image;
  return best (images, platform, preset);
}
