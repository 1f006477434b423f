#pragma once

#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/pass_options.hpp"

namespace tessera::train::internal {

// Loops over the neurons of a layer, whose rows are contiguous. Threads share the rows; the bits do
// not depend on their number.

// Adds its bias to each row.
void add_bias(MatrixView<float> rows, std::span<const float> bias, Executor& executor);

// Applies the activation of host::ForwardOptions, with its bits.
void activate(MatrixView<float> rows, host::Activation activation, Executor& executor);

// Sets `gradient` to 0 where the output of ReLU is not positive.
void pass_where_positive(MatrixView<const float> output, MatrixView<float> gradient,
                         Executor& executor);

// Writes the sum of each row. A row is added up in 16 sums side by side, which vectors hold.
void sum_rows(MatrixView<const float> rows, std::span<float> sums, Executor& executor);

}  // namespace tessera::train::internal
