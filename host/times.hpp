#pragma once

namespace tessera::host {

// Measured times of a pass on this computer, by its clock: they differ from run to run. A pass of
// cells or rows that has fewer than 2^18 multiplications a group is not divided, because the
// clock would take up to a third of it: all its seconds count as kernel_seconds.
struct HostTimes {
  double seconds = 0;         // from call to return
  double copy_seconds = 0;    // part of `seconds` that copies an operand into panels
  double kernel_seconds = 0;  // in kernels, all threads together

  HostTimes& operator+=(const HostTimes& more) {
    seconds += more.seconds;
    copy_seconds += more.copy_seconds;
    kernel_seconds += more.kernel_seconds;
    return *this;
  }
};

}  // namespace tessera::host
