#pragma once

#include <cstdint>

// These functions follow a product on the rows of its results, for loops on this computer: on
// vectors of the best instruction set of the CPU, with the same bits on each. They never allocate,
// throw or print, and any number of threads may call them with rows of their own. The time is that
// of reading and writing the rows once.
namespace tessera::codelets {

// Some rows of floats that are changed in place; row r begins at first + r * stride.
struct FloatRows {
  float* first = nullptr;
  std::int64_t stride = 0, rows = 0, cols = 0;
};

// Adds bias[r] to row r, unless bias is nullptr, and then replaces numbers below 0 by 0 if `relu`;
// NaN and -0 remain.
void add_bias_and_clip(const FloatRows& sums, const float* bias, bool relu) noexcept;

// Replaces numbers by 0 where outputs, whose row r begins at outputs + r * outputs_stride, are not
// above 0: the derivative of a ReLU.
void keep_where_positive(const FloatRows& sums, const float* outputs,
                         std::int64_t outputs_stride) noexcept;

// Returns the sum of a row: sixteen sums side by side, of every sixteenth number, and then their
// sum. The order differs from that of sum_rows (activation.hpp).
float sum_in_lanes(const float* row, std::int64_t count) noexcept;

}  // namespace tessera::codelets
