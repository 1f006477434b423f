#include "tessera/bench/size/files.hpp"

#include <fmt/format.h>
#include <fmt/os.h>

#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

// Draws the columns of all rows, four bytes each.
std::vector<std::int32_t> draw_columns(const Scattered& matrix) {
  std::vector<std::int32_t> columns;
  columns.reserve(static_cast<std::size_t>(matrix.entries()));
  for (std::int64_t row = 0; row < matrix.side; ++row)
    for (const std::int64_t col :
         sparse::random_choice(matrix.side, matrix.per_row, static_cast<std::uint64_t>(row)))
      columns.push_back(static_cast<std::int32_t>(col));
  return columns;
}

}  // namespace

void write_scattered_mtx(const std::string& path, const Scattered& matrix, EntryOrder order,
                         Triangle triangle) {
  const std::vector<std::int32_t> columns = draw_columns(matrix);
  const bool is_symmetric = triangle == Triangle::LowerOfSymmetric;
  std::int64_t entries = 0;
  for (std::size_t i = 0; i < columns.size(); ++i)
    entries += !is_symmetric || columns[i] <= std::int64_t(i) / matrix.per_row;
  auto file = fmt::output_file(path);
  file.print("%%MatrixMarket matrix coordinate real {}\n{} {} {}\n",
             is_symmetric ? "symmetric" : "general", matrix.side, matrix.side, entries);
  Random random(1);
  const auto print = [&](std::int64_t row, std::int64_t i) {
    const std::int64_t col = columns[static_cast<std::size_t>(row * matrix.per_row + i)];
    if (is_symmetric && col > row) return;
    file.print("{} {} {:.6f}\n", row + 1, col + 1, random.unit());
  };
  if (order == EntryOrder::ByRow) {
    for (std::int64_t row = 0; row < matrix.side; ++row)
      for (std::int64_t i = 0; i < matrix.per_row; ++i) print(row, i);
    return;
  }
  constexpr std::int64_t kMultiplier = 7919;  // a prime that does not divide the side
  for (std::int64_t i = 0; i < matrix.per_row; ++i)
    for (std::int64_t k = 0; k < matrix.side; ++k) {
      const std::int64_t row = k * kMultiplier % matrix.side;
      print(row, (i + row) % matrix.per_row);
    }
}

}  // namespace tessera::bench
