#pragma once

#include <string>

namespace tessera::inline v0::bench {

// What this core does at best right now, one thread, widest vectors Highway finds here: floating
// point operations per second with nothing but registers. About 0.1 s each.
struct FloatPeak {
  std::string target;   // the instruction set
  double fused = 0;     // multiply and add in one instruction: the usual peak
  double separate = 0;  // a multiplication and an addition, each rounded
};
FloatPeak measure_float_peak();

}  // namespace tessera::inline v0::bench
