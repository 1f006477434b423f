#include "tessera/runtime/internal/spread.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::runtime::internal {

std::int64_t spread_senders(const SpreadOperand& operand, const SpreadSlice& slice,
                            std::int64_t tiles) {
  constexpr std::int64_t kLeastBytes = 128;  // PopSparse's mapInput
  const std::int64_t elements = operand.groups * operand.columns * operand.rows;
  const std::int64_t run =
      std::max(ceil_div(elements, tiles), kLeastBytes / bytes_of(operand.type));
  std::int64_t senders = 0, counted = -1;  // the last tile counted
  for (std::int64_t k = slice.columns.begin; k < slice.columns.end; ++k) {
    const std::int64_t begin =
        (slice.group * operand.columns + k) * operand.rows + slice.rows.begin;
    const std::int64_t first = std::max(begin / run, counted + 1);
    const std::int64_t last = (begin + slice.rows.size() - 1) / run;
    senders += last - first + 1;
    counted = last;
  }
  return senders;
}

Cycles arrange_cycles(const PassSpec& spec, std::int64_t rows, const device::Machine& machine) {
  const std::int64_t bytes = spec.groups * rows * spec.grid.size.z * bytes_of(spec.data_type());
  return codelets::arrange_cycles(bytes, machine.tiles, machine.arrange_bytes_per_cycle);
}

}  // namespace tessera::runtime::internal
