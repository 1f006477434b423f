#pragma once

#include <string>

#include "tessera/base/units.hpp"

namespace tessera::host {

// The most floating point operations per second that one thread does at present, in registers alone
// and with the widest vectors that Highway finds.
struct FloatPeak {
  std::string target;   // the instruction set
  double fused = 0;     // multiply and add in one instruction: the peak that is usually quoted
  double separate = 0;  // a multiplication and an addition, each rounded
};

// Measures both peaks. Takes about 0.1 s for each.
FloatPeak measure_float_peak();

// Returns the bytes per second that one thread reads repeatedly from memory of this size: the rate
// of the cache that holds it. Takes some milliseconds.
double measure_read_rate(Bytes size);

}  // namespace tessera::host
