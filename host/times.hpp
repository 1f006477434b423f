#pragma once

namespace tessera::host {

// What a pass on this computer took, by its clock: measured, so never the same twice.
struct HostTimes {
  double seconds = 0;         // from call to return
  double copy_seconds = 0;    // of these, bringing an operand into panels
  double kernel_seconds = 0;  // in kernels, all threads together
};

}  // namespace tessera::host
