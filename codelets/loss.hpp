#pragma once

#include <cstdint>
#include <string_view>

#include "tessera/base/half.hpp"

// The losses of a batch and their derivatives. All functions compute in float. They never allocate,
// throw or print, and may run on many tiles at the same time. T is float, Half or BFloat16.
namespace tessera::codelets {

// The losses. Both are means over the whole batch.
//   SoftmaxCrossEntropy  -log(softmax(column)[label]), one label for each column
//   MeanSquaredError     (output - target)^2, also a mean over the rows
enum class Loss { SoftmaxCrossEntropy, MeanSquaredError };

// Returns "softmax-cross-entropy" or "mean-squared-error"; the text is valid as long as the
// program.
std::string_view to_string(Loss loss);

// The part of a batch on one tile: outputs [rows][columns], gapless. `batch` is the number of
// columns of the whole batch, by which sums are divided.
struct LossPart {
  std::int64_t rows = 0, columns = 0, batch = 0;
};

// Replaces the outputs by the gradient of the loss and returns this part's share of the loss.
// labels[column] is in 0 .. rows - 1. The largest output of a column is subtracted before the
// exponentials, so none overflows.
template <class T>
float softmax_cross_entropy(const LossPart& part, const std::int32_t* labels, T* outputs) noexcept;

// Does the same with targets [rows][columns].
template <class T>
float mean_squared_error(const LossPart& part, const T* targets, T* outputs) noexcept;

}  // namespace tessera::codelets
