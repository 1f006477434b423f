#pragma once

#include <cstdint>

#include "tessera/base/data_type.hpp"
#include "tessera/base/units.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/codelets/loss.hpp"
#include "tessera/codelets/optimiser.hpp"

// Cycles of the codelets of a network that are not part of a product. No estimator for them is
// published. The figures are counts of instructions, one a cycle, in vectors of 64 bits (two
// floats) between the loads and stores of 64 bits; square roots, divisions, exponentials,
// logarithms and hyperbolic tangents take one instruction for each element, because the machine has
// them for single floats only. Values of 16 bits are widened and narrowed at one instruction a
// vector each. A worker starts in 15 cycles, as in zero_cycles (vector_cycles.hpp), and takes 3 for
// each row: it loads the bias, copies it to both halves of a vector, and sets the counter of the
// loop. All functions are pure, never allocate and are O(1). Sizes must be >= 0, workers >= 1.
namespace tessera::codelets {

// The cycles of clearing the padding of a dense operand: `tail_bytes` at its end, and `row_bytes`
// at the end of each of `rows` rows, in 64-bit stores.
Cycles clear_padding_cycles(std::int64_t tail_bytes, std::int64_t rows, std::int64_t row_bytes,
                            std::int64_t workers);

// The cycles of add_bias_and_activate() for `elements` in `rows` rows.
Cycles activate_cycles(std::int64_t elements, std::int64_t rows, const ActivationRule& rule,
                       DataType type, std::int64_t workers);

// The cycles of multiply_by_derivative().
Cycles derivative_cycles(std::int64_t elements, const ActivationRule& rule, DataType type,
                         std::int64_t workers);

// The cycles of sum_rows().
Cycles sum_rows_cycles(std::int64_t elements, std::int64_t rows, DataType type,
                       std::int64_t workers);

// The cycles of softmax_cross_entropy() or mean_squared_error().
Cycles loss_cycles(const LossPart& part, Loss loss, DataType type, std::int64_t workers);

// The cycles of update_values() for `elements` values.
Cycles update_cycles(std::int64_t elements, const Optimiser& optimiser, DataType type,
                     std::int64_t workers);

}  // namespace tessera::codelets
