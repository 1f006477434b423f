#pragma once

#include <cstdint>

#include "tessera/base/dims.hpp"

namespace tessera::bench {

// Seconds of one product on one thread, by its processor time, in both orders of the operands.
struct OrderTimes {
  double call = 0, call_batch = 0;          // host::spmm
  double prepared = 0, prepared_batch = 0;  // host::Prepared
};

// Measures a square matrix in blocks of `block` x `block` with values of T: Half or BFloat16. The
// products run in turns, and the results of both orders are compared before anything is timed;
// std::runtime_error if they differ.
template <class T>
OrderTimes measure_orders(std::int64_t side, std::int64_t block, double density, std::int64_t z,
                          int repeats);

}  // namespace tessera::bench
