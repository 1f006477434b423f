#include "tessera/runtime/host_cells.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"

namespace tessera::inline v0::runtime {
namespace {

constexpr std::int64_t kVector = 16;  // floats of the widest vectors: panels are whole ones

// Panels of equal width, so that none is much narrower than the others.
std::int64_t panel_width(std::int64_t z, std::int64_t most) {
  if (z <= most) return std::max<std::int64_t>(z, 1);
  return round_up(ceil_div(z, ceil_div(z, most)), kVector);
}

// `rows` as whole blocks, and not more than there are.
std::int64_t whole_blocks(std::int64_t rows, std::int64_t block, std::int64_t size) {
  return std::clamp(rows / block * block, block, std::max(block, round_up(size, block)));
}

}  // namespace

HostCells product_cells(const HostProblem& problem, const device::HostCpu& cpu) {
  // A row of fewer non-zeros than this in a cell spends more on its sums and its end than on them.
  constexpr double kFewestInRow = 8;
  constexpr std::int64_t kMostColumns = 64;
  const auto [g, x, y, z] = problem.size;
  const bool element = problem.block.is_element();
  const double in_row =
      double(problem.blocks) * double(problem.block.area()) / double(std::max(x, std::int64_t{1}));
  const double density = in_row / double(std::max(y, std::int64_t{1}));
  HostCells cells;
  cells.z = panel_width(z, kMostColumns);
  const std::int64_t row_bytes = cells.z * bytes_of(problem.type);
  const std::int64_t in_l1 = 3 * cpu.l1_data.value / 4 / row_bytes;
  const std::int64_t in_l2 = cpu.l2.value / 2 / row_bytes;
  const auto enough = static_cast<std::int64_t>(kFewestInRow / std::max(density, 1e-6));
  // Rows of S in between would leave L1 and still end rows of R often.
  const std::int64_t rows = element && in_l1 >= enough / 2 ? std::max(in_l1, enough) : in_l2;
  cells.y = whole_blocks(rows, problem.block.cols, y);
  cells.x = whole_blocks(std::min(cpu.l2.value / 4 / (cells.z * 4), ceil_div(x, 8)),
                         problem.block.rows, x);
  // So few values that words of 16 bits can count them: a batch of one waits for words and values.
  constexpr double kCounted = 50'000;
  if (element)
    cells.x = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(kCounted / std::max(density * double(cells.y), 1.0)), 1, cells.x);
  // A copy costs as much as some ten products a column.
  cells.pack = cells.z < z && (element || double(problem.blocks) * double(problem.block.area()) >
                                              100.0 * double(y));
  if (!cells.pack && cells.z < z) cells.z = z;
  // With few cells along y the sums are seldom read again, and a copy would cost more.
  constexpr std::int64_t kFewCells = 4;
  cells.gather = element && kFewCells * cells.y < y && cells.z < z;
  return cells;
}

HostCells gradient_cells(const HostProblem& problem, const device::HostCpu& cpu) {
  constexpr std::int64_t kMostColumns = 256;
  const auto [g, x, y, z] = problem.size;
  HostCells cells;
  cells.z = panel_width(z, kMostColumns);
  const std::int64_t row_bytes = cells.z * bytes_of(problem.type);
  cells.y = whole_blocks(cpu.l2.value / 2 / row_bytes, problem.block.cols, y);
  cells.x = whole_blocks(std::min(std::int64_t{256}, ceil_div(x, 8)), problem.block.rows, x);
  cells.pack = cells.z < z;
  return cells;
}

}  // namespace tessera::inline v0::runtime
