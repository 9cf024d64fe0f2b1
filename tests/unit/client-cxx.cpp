// client-cxx.cpp - libgpubroker is usable from C++
#include <cstdio>
#include <cstring>

#include <gpubroker/client.h>

int
main ()
{
  gpubc *c = gpubc_new ("ipc:///tmp/gpub-nobody-is-here");
  gpubc_reply r;
  int rc = c ? gpubc_call (c, "ping", "{}", 1000, nullptr, nullptr, &r) : GPUBC_INVALID;

  std::printf ("%sok 1 - a call from C++\n1..1\n", rc == GPUBC_UNREACHABLE && !std::strcmp (r.json, "{}") ? "" : "not ");
  gpubc_free (c);
  return rc != GPUBC_UNREACHABLE;
}
