/* no-entry.c - a shared object that is no plugin */
int gpub_no_entry;
