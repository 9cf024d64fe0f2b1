/* format.h - numbers as people read them */
#ifndef GPUB_FORMAT_H
#define GPUB_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum { FMT = 32 };

/* All write at most FMT bytes and return buf. */
const char *fmt_money (char *buf, int64_t udollar); /* "$1.95", "$0.0042" */
const char *fmt_span (char *buf, int64_t ms);       /* "21s", "5m 00s", "11h 55m", "2d 03h" */
const char *fmt_time (char *buf, int64_t ms);       /* "2026-01-31 12:00 UTC" */
/* The member as money or span; "" when it is absent. */
const char *fmt_money_of (char *buf, const json_t *obj, const char *key);
const char *fmt_span_of (char *buf, const json_t *obj, const char *key);
const char *fmt_time_of (char *buf, const json_t *obj, const char *key);
const char *fmt_int_of (char *buf, const json_t *obj, const char *key);
/* "2x H100 80G" of an offer's gpu; "-" without GPU.  size bytes at most. */
const char *fmt_gpu (char *buf, size_t size, const json_t *gpu);
/* The same of a LEASE's machine; "" when nothing is known. */
const char *fmt_machine_gpu (char *buf, size_t size, const json_t *machine);
/* "shadeform/hyperstack" of an offer, attempt or machine. */
const char *fmt_cloud (char *buf, size_t size, const json_t *obj);

#endif
