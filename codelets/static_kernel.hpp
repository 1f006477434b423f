#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/units.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/codelets/static_words.hpp"

namespace tessera::codelets {

// The places of the rows of operands that are not packed, as in Share mode, where a tile reads its
// rows from the memory of all of them: block row or block column i of the tile begins at row
// places[i] * form.block.rows of the operand. Empty: the rows are packed, i is place i.
struct StaticPlaces {
  std::span<const std::int32_t> in, in_s;  // as the operands of KernelArgs
};

// Runs the kernel of a tile with a static pattern: `operation` is Fwd or GradW. GradA is the Fwd of
// the tile's transposed blocks. Results are replaced: Fwd writes all rows that the words name, and
// GradW all gradients. All results have the form's type. Blocks of half round each product and each
// sum to half; all other kernels add in float, fused as kernel.hpp describes, and round once at the
// end. Fwd adds in the order of the words, GradW in lanes over z. `args` has no sub-group; its
// operands and results have form.z columns, and a row of the operand for each row of the tile's
// block columns (Fwd: in; GradW: in_s) and block rows (Fwd: out; GradW: in), packed unless `places`
// says where they are. The words are trusted. Never allocates, throws or prints. Thread-safe.
void run_static(const StaticForm& form, Operation operation, const KernelArgs& args,
                const StaticPlaces& places = {}) noexcept;

// Returns the cycles of that kernel, from the counts of the words: for Fwd the formulas of
// cost/static_cycles.hpp with the clearing of the sums, for GradW those of the dynamic kernels
// without a search, with the blocks dealt to workers in equal runs. O(words).
Cycles static_cycles(const StaticForm& form, Operation operation, const void* words);

}  // namespace tessera::codelets
