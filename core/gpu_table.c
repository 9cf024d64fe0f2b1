/* gpu_table.c - reads core/gpus.conf */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <libconfig.h>

#include "core/gpu.h"
#include "core/gpu_table.h"
#include "core/vec.h"

void
gpu_squeeze (const char *name, char *out, size_t size)
{
  size_t n = 0;

  for (; *name && n + 1 < size; name++)
    if (isalnum ((unsigned char)*name))
      out[n++] = (char)toupper ((unsigned char)*name);
  out[n] = '\0';
}

static int
by_key (const void *a, const void *b)
{
  return strcmp (((const struct gpu_key *)a)->key, ((const struct gpu_key *)b)->key);
}

const struct gpu_key *
gpu_table_find (const struct gpu_table *t, const char *key)
{
  struct gpu_key want = { 0 };

  if (strlen (key) >= sizeof want.key)
    return NULL;
  strcpy (want.key, key);
  return bsearch (&want, t->keys, t->nkeys, sizeof *t->keys, by_key);
}

typedef VEC (struct gpu_key) key_vec;

static struct gpu_key *
add_key (key_vec *keys, const char *name, size_t model)
{
  struct gpu_key *k = vec_push (keys);

  gpu_squeeze (name, k->key, sizeof k->key);
  k->model = (uint16_t)(model + 1);
  return k;
}

static int
form_parse (const char *name)
{
  for (int f = GPU_FORM_PCIE; f < GPU_FORM_END; f++)
    if (strcmp (name, gpu_form_name ((enum gpu_form)f)) == 0)
      return f;
  return -1;
}

static int
read_forms (const config_setting_t *s, struct gpu_model *m, struct err *e)
{
  for (int i = 0; s && i < config_setting_length (s); i++) {
    int f = form_parse (config_setting_get_string_elem (s, i));

    if (f < 0)
      return err_set (e, ERR_INTERNAL, "gpus.conf: %s has an unknown form", m->name);
    m->forms |= 1u << f;
  }
  return 0;
}

static int
read_exact (const config_setting_t *s, size_t model, key_vec *keys, struct err *e)
{
  for (int i = 0; s && i < config_setting_length (s); i++) {
    config_setting_t *x = config_setting_get_elem (s, (unsigned)i);
    const char *name = NULL, *form = NULL;
    struct gpu_key *k;
    int vram = 0;

    config_setting_lookup_string (x, "name", &name);
    config_setting_lookup_string (x, "form", &form);
    config_setting_lookup_int (x, "vram", &vram);
    if (!name || (form && form_parse (form) < 0))
      return err_set (e, ERR_INTERNAL, "gpus.conf:%u: a bad exact name",
                      config_setting_source_line (x));
    k = add_key (keys, name, model);
    k->vram = (uint16_t)vram;
    k->form = form ? (uint8_t)form_parse (form) : 0;
  }
  return 0;
}

static int
read_model (config_setting_t *s, struct gpu_model *m, size_t index, key_vec *keys, struct err *e)
{
  const char *name = NULL, *vendor = "nvidia";
  const config_setting_t *vram = config_setting_get_member (s, "vram");
  const config_setting_t *alias = config_setting_get_member (s, "alias");

  config_setting_lookup_string (s, "name", &name);
  config_setting_lookup_string (s, "vendor", &vendor);
  if (!name || !vram || config_setting_length (vram) > GPU_SIZES)
    return err_set (e, ERR_INTERNAL, "gpus.conf:%u: a model needs a name and 1 to 4 sizes",
                    config_setting_source_line (s));
  m->name = strdup (name);
  m->vendor = strdup (vendor);
  for (int i = 0; i < config_setting_length (vram); i++)
    m->vram[i] = (uint16_t)config_setting_get_int_elem (vram, i);
  add_key (keys, name, index);
  for (int i = 0; alias && i < config_setting_length (alias); i++)
    add_key (keys, config_setting_get_string_elem (alias, i), index);
  if (read_forms (config_setting_get_member (s, "forms"), m, e) < 0)
    return -1;
  return read_exact (config_setting_get_member (s, "exact"), index, keys, e);
}

static int
sort_keys (struct gpu_table *t, struct err *e)
{
  qsort (t->keys, t->nkeys, sizeof *t->keys, by_key);
  for (size_t i = 1; i < t->nkeys; i++)
    if (strcmp (t->keys[i - 1].key, t->keys[i].key) == 0)
      return err_set (e, ERR_INTERNAL, "gpus.conf: '%s' names two things", t->keys[i].key);
  return 0;
}

static int
read_models (const config_t *c, struct gpu_table *t, struct err *e)
{
  config_setting_t *list = config_lookup (c, "models");
  key_vec keys = VEC_EMPTY;
  int rc = 0;

  if (!list || config_setting_length (list) <= 0)
    return err_set (e, ERR_INTERNAL, "gpus.conf has no models");
  t->models = calloc ((size_t)config_setting_length (list), sizeof *t->models);
  if (!t->models)
    abort ();
  for (int i = 0; rc == 0 && i < config_setting_length (list); i++)
    rc = read_model (config_setting_get_elem (list, (unsigned)i), &t->models[t->nmodels++],
                     (size_t)i, &keys, e);
  t->keys = keys.at;
  t->nkeys = keys.n;
  return rc < 0 ? rc : sort_keys (t, e);
}

int
gpu_table_parse (const char *text, struct gpu_table *t, struct err *e)
{
  config_t c;
  int rc;

  memset (t, 0, sizeof *t);
  config_init (&c);
  if (config_read_string (&c, text) == CONFIG_TRUE)
    rc = read_models (&c, t, e);
  else
    rc = err_set (e, ERR_INTERNAL, "gpus.conf:%d: %s", config_error_line (&c),
                  config_error_text (&c));
  config_destroy (&c);
  if (rc < 0)
    gpu_table_done (t);
  return rc;
}

void
gpu_table_done (struct gpu_table *t)
{
  for (size_t i = 0; i < t->nmodels; i++) {
    free (t->models[i].name);
    free (t->models[i].vendor);
  }
  free (t->models);
  free (t->keys);
  memset (t, 0, sizeof *t);
}
