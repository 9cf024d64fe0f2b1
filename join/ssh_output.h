/* ssh_output.h - what a node prints, one clean key=value line at a time
 *
 * The node is hostile input: a line past LINE_MAX loses its rest, bytes that are no UTF-8 or are
 * control characters become '?', a line without a known shape is counted and dropped.
 */
#ifndef GPUB_SSH_OUTPUT_H
#define GPUB_SSH_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

enum { OUTPUT_LINE_MAX = 1024, OUTPUT_LOG_LINES = 200, OUTPUT_PROGRESS_MAX = 256 };

struct output {
  char line[OUTPUT_LINE_MAX + 1];
  size_t n;
  bool cut;
  unsigned odd; /* lines that were dropped */
  void (*on) (void *arg, const char *key, char *value);
  void *arg;
};

/* Bytes as they come; `on` is called for each whole line that is a key, '=' and a value. */
void output_feed (struct output *o, const char *bytes, size_t n);
/* Makes text valid, printable UTF-8 in place. */
void clean_text (char *text);

/* Facts: only keys of the table, each once; "gpu" lines become objects of the array "gpus". */
json_t *facts_new (void);
bool facts_add (json_t *facts, const char *key, const char *value);

#endif
