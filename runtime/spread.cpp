#include "tessera/runtime/internal/spread.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"

namespace tessera::runtime::internal {

std::int64_t spread_senders(const PassSpec& spec, const TensorHome& operand, const HomeShare& slice,
                            std::int64_t tiles) {
  constexpr std::int64_t kLeastBytes = 128;  // PopSparse's mapInput
  const std::int64_t run = std::max(ceil_div(operand.rows * operand.cols, tiles),
                                    kLeastBytes / bytes_of(spec.data_type()));
  const std::int64_t rows = operand.rows / spec.groups, group = slice.first_row / rows;
  std::int64_t senders = 0, counted = -1;  // the last tile counted
  for (std::int64_t k = slice.first_col; k < slice.first_col + slice.width; ++k) {
    const std::int64_t begin = (group * operand.cols + k) * rows + slice.first_row % rows;
    const std::int64_t first = std::max(begin / run, counted + 1);
    const std::int64_t last = (begin + slice.rows() - 1) / run;
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
