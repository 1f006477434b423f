#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/units.hpp"

namespace tessera::host {

// The computer we run on, as far as cutting a layer into cells depends on it. A plain value.
struct HostCpu {
  std::int64_t cores = 1;  // hardware threads this process may run on
  Bytes l1_data, l2;       // of one core
  Bytes l3;                // shared; 0 when there is none

  friend bool operator==(const HostCpu&, const HostCpu&) = default;
};

// What the operating system says. A cache it does not name is taken to be of 32 KiB, 1 MiB and 16
// MiB. Some file reads; thread-safe. Results of a layer do not depend on it but for how sums over
// z panels of GradW are split (HostCells).
HostCpu read_host_cpu();

// "AMD EPYC-Genoa", as the operating system calls the processor; "unknown" when it does not.
// Thread-safe; reads a file.
std::string host_cpu_model();

}  // namespace tessera::host
