/* main.c - gpubroker-runner: one program, two roles, never both in one process
 *
 * The ssh role faces hostile nodes; the kube role holds kubeconfigs.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "join/runner.h"

int
main (int argc, char **argv)
{
  if (argc == 2 && strcmp (argv[1], "--ssh") == 0)
    return ssh_main ();
  if (argc == 2 && strcmp (argv[1], "--kube") == 0)
    return kube_main ();
  fprintf (stderr, "usage: gpubroker-runner --ssh|--kube (started by gpubrokerd)\n");
  return 2;
}
