#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/units.hpp"

namespace tessera::host {

// The cores, caches and vectors of a computer, on which the cut of a layer into cells depends. A
// plain value.
struct HostCpu {
  std::int64_t cores = 1;  // hardware threads this process may run on
  Bytes l1_data, l2;       // of one core
  Bytes l3;                // shared; 0 when there is none
  Bytes vector{64};        // the widest that kernels use; changes no bit of a result
  // True if two products of bfloat16 take the time of one of floats; changes no bit of a result.
  bool fast_pairs = false;

  friend bool operator==(const HostCpu&, const HostCpu&) = default;
};

// Returns the figures of this computer as the operating system gives them. Caches that it does not
// name count as 32 KiB, 1 MiB and 16 MiB. Reads some files; thread-safe. Results of a layer depend
// on the figures only in the order of the sums (HostCells).
HostCpu read_host_cpu();

// Returns the processor's name as the operating system gives it, for example "AMD EPYC-Genoa", or
// "unknown". Reads a file; thread-safe.
std::string host_cpu_model();

}  // namespace tessera::host
