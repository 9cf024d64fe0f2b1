/* ssh.c - the ssh role: frames in, sessions out */
#include "config.h"

#include "join/runner.h"

int
ssh_main (void)
{
  return 1;
}
