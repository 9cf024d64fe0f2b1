/* image.c - the image that machines boot: an SSM parameter names it, else the newest of an owner */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { IMAGE_FRESH_MS = 60 * 60 * 1000, GIB_MIN = 8 };

static const char *
ec2_arch (const char *arch)
{
  return strcmp (arch, "aarch64") == 0 ? "arm64" : "x86_64";
}

static bool
image_take (const json_t *row, const char *arch, struct image *out)
{
  const char *id = json_str (row, "imageId", ""), *root = json_str (row, "rootDeviceName", "");
  const json_t *device;
  size_t i;

  if (!id_valid (id, "ami-") || !*root || strlen (root) >= sizeof out->root ||
      strcmp (json_str (row, "imageState", ""), "available") != 0 ||
      strcmp (json_str (row, "architecture", ""), ec2_arch (arch)) != 0)
    return false;
  *out = (struct image){ .gib = GIB_MIN };
  snprintf (out->id, sizeof out->id, "%s", id);
  snprintf (out->root, sizeof out->root, "%s", root);
  snprintf (out->name, sizeof out->name, "%s", json_str (row, "name", id));
  json_array_foreach (json_object_get (row, "blockDeviceMapping"), i, device)
    if (strcmp (json_str (device, "deviceName", ""), root) == 0 &&
        num (json_object_get (device, "ebs"), "volumeSize"))
      out->gib = (uint32_t) num (json_object_get (device, "ebs"), "volumeSize");
  return true;
}

int32_t
image_read (const struct ctx *c, const char *id, const char *arch, struct image *out)
{
  AUTO_QUERY struct query q = query_new ("DescribeImages");
  json_auto_t *rows = NULL;
  int32_t rc;

  query_add (&q, "ImageId.1", id);
  rc = ec2_pages (c, "get image", &q, "imagesSet", &rows);
  if (rc == GPUB_OK && strcmp (json_str (json_array_get (rows, 0), "imageId", ""), id) != 0)
    return plug_error (c->err, GPUB_E_UNAVAILABLE,
                       "get image %s: the answer is about something else", id);
  if (rc == GPUB_E_NOT_FOUND ||
      (rc == GPUB_OK && !image_take (json_array_get (rows, 0), arch, out)))
    return plug_error (c->err, GPUB_E_INVALID, "image '%.40s' is not usable in %s on %s", id,
                       c->region, arch);
  return rc;
}

static int32_t
newest (const struct ctx *c, const char *arch, struct image *out)
{
  AUTO_QUERY struct query q = query_new ("DescribeImages");
  json_auto_t *rows = NULL;
  const json_t *row;
  const char *latest = "";
  struct image image;
  size_t i;
  int32_t rc;

  query_add (&q, "Owner.1", c->s->ami_owner);
  query_filter (&q, "name", c->s->ami_name);
  query_filter (&q, "state", "available");
  query_filter (&q, "architecture", ec2_arch (arch));
  rc = ec2_pages (c, "list images", &q, "imagesSet", &rows);
  if (rc != GPUB_OK)
    return rc;
  json_array_foreach (rows, i, row)
    if (image_take (row, arch, &image) && strcmp (json_str (row, "creationDate", ""), latest) > 0) {
      latest = json_str (row, "creationDate", "");
      *out = image;
    }
  return *latest
             ? GPUB_OK
             : plug_error (c->err, GPUB_E_UNAVAILABLE,
                           "no image for %s in %s: set ami_parameter, or ami_owner and ami_name",
                           arch, c->region);
}

static void
parameter_of (const struct ctx *c, const char *arch, char *out, size_t size)
{
  const char *text = c->s->ami_parameter, *hole = strstr (text, "x86_64");

  if (hole && strcmp (arch, "aarch64") == 0)
    snprintf (out, size, "%.*sarm64%s", (int) (hole - text), text, hole + 6);
  else
    snprintf (out, size, "%s", text);
}

/* A parameter that is not there, or may not be read, leaves the search by name. */
static int32_t
choose (const struct ctx *c, const char *arch, struct image *out)
{
  json_auto_t *answer = NULL, *body = NULL;
  char name[1024];
  int32_t rc;

  parameter_of (c, arch, name, sizeof name);
  body = json_pack ("{s:s}", "Name", name);
  rc = *name ? json_read (c, "get image parameter", "ssm", "AmazonSSM.GetParameter", body, &answer)
             : GPUB_E_NOT_FOUND;
  if (rc == GPUB_OK) {
    const char *id = sub_str (answer, "Parameter", "Value", "");

    if (!id_valid (id, "ami-"))
      return plug_error (c->err, GPUB_E_INVALID, "the parameter %.100s holds no image id", name);
    return image_read (c, id, arch, out);
  }
  if (rc == GPUB_E_NOT_FOUND || rc == GPUB_E_AUTH || rc == GPUB_E_INVALID)
    return newest (c, arch, out);
  return rc;
}

static bool
unpack (const json_t *j, struct image *out)
{
  if (!j)
    return false;
  snprintf (out->id, sizeof out->id, "%s", json_str (j, "id", ""));
  snprintf (out->root, sizeof out->root, "%s", json_str (j, "root", ""));
  snprintf (out->name, sizeof out->name, "%s", json_str (j, "name", ""));
  out->gib = (uint32_t) json_i64 (j, "gib", 0);
  return true;
}

int32_t
image_find (const struct ctx *c, const char *arch, struct image *out)
{
  json_auto_t *known = NULL, *fresh = NULL;
  char key[32];
  int32_t rc;

  snprintf (key, sizeof key, "image/%s", arch);
  known = cache_get (c, key, IMAGE_FRESH_MS);
  if (unpack (known, out))
    return GPUB_OK;
  rc = choose (c, arch, out);
  if (rc != GPUB_OK)
    return rc;
  fresh = json_pack ("{s:s, s:s, s:s, s:i}", "id", out->id, "root", out->root, "name", out->name,
                     "gib", (int) out->gib);
  if (fresh)
    cache_put (c, key, fresh);
  return GPUB_OK;
}
