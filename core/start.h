/* start.h - from a configuration to a running broker, and back */
#ifndef GPUB_START_H
#define GPUB_START_H

#include "core/broker.h"

enum { START_BOOKS = 3 }; /* exit code: the books cannot be used until a person does something */

/* b->conf is loaded.  Afterwards loop_run(b->loop) serves. */
int start_broker (struct broker *b, struct err *e);
/* Instead of serving: loop_run(b->loop) ends once the books are made again from the clouds' marks;
 * b->exit_code says whether every cloud was listed whole.  instance: by hand; NULL: from its file.
 */
int start_rebuild (struct broker *b, const char *instance, struct err *e);
bool start_uuid (const char *text);
/* Opens and reads them; what a restart does not mend makes b->exit_code START_BOOKS. */
int start_books (struct broker *b, const char *instance, struct err *e);
void start_undo (struct broker *b);
/* Reads the file again; on failure the old configuration stays, and NULL.  Else what became of it:
 * {"started":[NAME...],"failed":[{"provider","message"}...]}. */
json_t *start_reload (struct broker *b, struct err *e);
/* Refuses a configuration that lacks a provider or cluster which a lease still needs. */
int start_check_leases (const struct broker *b, const struct conf *c, struct err *e);
void start_localities (struct broker *b);
void start_uids (struct broker *b);
/* Asks every plugin which options it takes and compares: what --check-config adds to conf_load. */
int start_check_plugins (struct conf *c, struct err *e);
/* What looks like a secret in a file and is an option of the plugin's becomes one. */
void start_declare (struct conf *c);

#endif
