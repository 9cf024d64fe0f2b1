/* kube.c - the role that talks to API servers
 *
 * Shares no process with the ssh role: here are kubeconfigs, there are hostile nodes.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <curl/curl.h>
#include <jansson.h>

#include "core/child.h"
#include "join/kube.h"
#include "join/runner.h"

static const struct {
  const char *name;
  kube_call_fn *fn;
  bool offline;
} calls[] = {
  { "lint", kube_lint, false },
  { "mint", kube_mint, false },
  { "invalidate", kube_invalidate, false },
  { "manifests", kube_manifests, false },
  { "verify", kube_verify, false },
  { "drain", kube_drain, false },
  { "delete_node", kube_delete_node, false },
  { "health", kube_health, false },
  { "render", kube_render, true },
  { "reach", kube_reach, true },
};

kube_call_fn *
kube_call_find (const char *name, bool *offline)
{
  for (size_t i = 0; i < N_ELEMENTS (calls); i++)
    if (strcmp (calls[i].name, name) == 0) {
      *offline = calls[i].offline;
      return calls[i].fn;
    }
  return NULL;
}

int
kube_main (void)
{
  struct err e = ERR_INIT;
  int stdio_fd;

  if (child_confine (&e) < 0) {
    fprintf (stderr, "gpubroker-runner: %s\n", e.text);
    return 2;
  }
  stdio_fd = child_capture_stdio (&e);
  if (stdio_fd < 0)
    return 1;
  json_object_seed (0); /* before there are threads that could race for it */
  if (curl_global_init (CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return 1;
  return kube_serve (stdio_fd, &e) < 0;
}
