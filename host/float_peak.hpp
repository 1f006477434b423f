#pragma once

#include <string>

#include "tessera/base/units.hpp"

namespace tessera::host {

// What this core does at best right now, one thread, widest vectors Highway finds here: floating
// point operations per second with nothing but registers. About 0.1 s each.
struct FloatPeak {
  std::string target;   // the instruction set
  double fused = 0;     // multiply and add in one instruction: the usual peak
  double separate = 0;  // a multiplication and an addition, each rounded
};
FloatPeak measure_float_peak();

// Bytes per second that one thread reads, again and again, from memory of this size: the rate of
// the level of cache that holds it. Some milliseconds.
double measure_read_rate(Bytes size);

}  // namespace tessera::host
