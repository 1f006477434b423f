#include "tessera/runtime/internal/layer_check.hpp"

#include <fmt/format.h>

namespace tessera::runtime::internal {

Bytes resident_bytes(const planner::Plan& plan, DataType type, const device::Machine& machine) {
  const Words words = plan.fwd_meta_words + plan.grad_a_meta_words;
  Bytes bytes(words.value * machine.word_bits / 8 + plan.nonzeros_per_bucket * bytes_of(type));
  for (const planner::Plan& layout : plan.backward) bytes += resident_bytes(layout, type, machine);
  return bytes;
}

sparse::Csr<float> full_matrix(std::int64_t rows, std::int64_t cols) {
  sparse::Csr<float> full;
  full.rows = rows;
  full.cols = cols;
  full.values.resize(std::size_t(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) full.col.push_back(std::int32_t(col));
    full.row_begin.push_back(std::ssize(full.col));
  }
  return full;
}

verify::MemoryDamage memory_damage(std::initializer_list<device::Damage> programs) {
  verify::MemoryDamage all;
  for (const device::Damage& damage : programs) {
    if (damage.slots == 0) continue;
    if (all.slots == 0) all.first = fmt::format("tile {}, \"{}\"", damage.tile.value, damage.slot);
    all.slots += damage.slots;
  }
  return all;
}

}  // namespace tessera::runtime::internal
