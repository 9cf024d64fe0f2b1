// header-cxx.cpp - the plugin header is C++ too
#include <gpubroker/provider.h>
#include <cstdio>

int
main ()
{
  std::puts ("ok 1 - header is C++\n1..1");
  return GPUB_OK;
}
