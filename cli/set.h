/* set.h - the setters of the option table: a word becomes a member of an object */
#ifndef GPUB_SET_H
#define GPUB_SET_H

#include "cli/args.h"

typedef int setter (const struct option *o, const char *value, json_t *into, struct err *e);

setter set_true, set_false, set_string, set_list, set_choice, set_country;
setter set_count, set_gib, set_money, set_price, set_span, set_ttl, set_since;
setter set_gpu, set_on_failure, set_port, set_host, set_label;
setter set_ssh_key, set_user_data;
setter set_k8s, set_no_k8s;

#endif
