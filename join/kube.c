/* kube.c - the Kubernetes API, over libcurl */
#include "config.h"

#include "join/runner.h"

int
kube_main (void)
{
  return 1;
}
