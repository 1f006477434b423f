#include <cstdio>

#include "tessera/base/error.hpp"
#include "tessera/device/machine.hpp"

// An exception of a library is caught by its type in a program.
int main() {
  try {
    tessera::device::machine_preset("nowhere");
  } catch (const tessera::Error& error) {
    return std::printf("caught: %s\n", error.what()), 0;
  }
  return 1;
}
