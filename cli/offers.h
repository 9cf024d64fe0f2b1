/* offers.h - OFFERs as a table */
#ifndef GPUB_OFFERS_TABLE_H
#define GPUB_OFFERS_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

void offers_table (FILE *f, const json_t *offers, bool colour);

#endif
