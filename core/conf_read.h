/* conf_read.h - settings into structs, by table; for core/conf*.c alone
 *
 * Every error begins with file:line and ends with what would be right.  A value is never printed
 * where it may be a secret: only names, and values of settings that the tables know.
 */
#ifndef GPUB_CONF_READ_H
#define GPUB_CONF_READ_H

#include <libconfig.h>

#include "core/conf.h"
#include "core/vec.h"

enum field_type {
  FIELD_STRING,
  FIELD_PATH, /* absolute */
  FIELD_NAME, /* letters, digits, - and _; at most 32 */
  FIELD_BOOL,
  FIELD_COUNT,    /* uint32_t */
  FIELD_DURATION, /* int64_t ms */
  FIELD_TTL,      /* the same, or "none": 0 */
  FIELD_MONEY,    /* uint64_t micro-dollars */
  FIELD_STRINGS,  /* struct conf_strings */
  FIELD_CHOICE,   /* int: index into choices */
  FIELD_CUSTOM,
  FIELD_IGNORE, /* read elsewhere */
};

typedef int field_custom (const config_setting_t *s, void *base, const char *path, struct err *e);

struct field {
  const char *name;
  enum field_type type;
  size_t offset;
  const char *const *choices; /* NULL-ended */
  field_custom *custom;
};

/* path is what to call the file when libconfig does not know; where is "defaults" or "cluster
 * 'spoke-a'". */
int conf_error (const config_setting_t *s, const char *path, struct err *e, const char *fmt, ...)
    PRINTF (4, 5);
int conf_group (const config_setting_t *s, const char *path, const char *where,
                const struct field *fields, size_t n, void *base, struct err *e);
/* One setting by its field. */
int conf_field (const config_setting_t *s, const char *path, const char *where,
                const struct field *f, void *base, struct err *e);
int conf_unknown (const config_setting_t *s, const char *path, const char *where,
                  const struct field *fields, size_t n, struct err *e);
const struct field *conf_find_field (const struct field *fields, size_t n, const char *name);

void conf_set (char **p, const char *value); /* frees what was there; NULL clears */
void conf_strings_free (struct conf_strings *s);
void conf_strings_add (struct conf_strings *s, const char *value);
/* Any setting as JSON; NULL with an error for what JSON cannot say. */
json_t *conf_json (const config_setting_t *s, const char *path, struct err *e);

/* NAME_file, NAME_env, NAME_credential: 1 and *x filled, 0 when the name ends in none of them. */
int conf_secret_setting (const config_setting_t *s, const char *path, const char *where,
                         struct conf_secret *x, struct err *e);
void conf_secret_free (struct conf_secret *x);

/* The parts. */
void conf_part_defaults (struct conf *c);
int conf_read_broker (const config_setting_t *s, struct conf *c, struct err *e);
int conf_read_bus (const config_setting_t *s, struct conf *c, struct err *e);
int conf_read_defaults (const config_setting_t *s, struct conf *c, struct err *e);
int conf_read_limits (const config_setting_t *s, struct conf *c, struct err *e);
int conf_read_providers (const config_setting_t *s, struct conf *c, struct err *e);
int conf_read_clusters (const config_setting_t *s, struct conf *c, struct err *e);
void conf_add_standalone (struct conf *c);
int conf_read_localities (const config_setting_t *s, struct conf *c, struct err *e);

#endif
