/* lacks-remove.c - what cannot end a machine must not make one */
#define GPUB_NAME "lacks-remove"
#include "tests/bad/bad.h"

BAD_ENTRY (.remove = NULL)
