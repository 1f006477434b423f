#pragma once

#include <cstdint>

#include "tessera/base/dims.hpp"
#include "tessera/base/pass.hpp"

namespace tessera::pod::internal {

// The roles of the axes in a product: rows of the operand are cut along one, rows of the result
// along the other.
struct ProductAxes {
  Axis in = Axis::Y, out = Axis::X;
};

inline ProductAxes axes_of(Pass pass) {
  return pass == Pass::GradA ? ProductAxes{Axis::X, Axis::Y} : ProductAxes{};
}

// One device's rectangle of an operand, for each of its groups.
struct Slice {
  Range groups, rows, cols;
  std::int64_t rows_of_group = 0;  // of the whole operand

  std::int64_t all_rows() const { return groups.size() * rows.size(); }
  std::int64_t elements() const { return all_rows() * cols.size(); }

  // Returns the row of the operand that is row r of the slice.
  std::int64_t row(std::int64_t r) const {
    return (groups.begin + r / rows.size()) * rows_of_group + rows.begin + r % rows.size();
  }
};

// Calls visit(row, column, position) for the positions of a range in a slice.
template <class Visit>
void for_each_element(const Slice& slice, Range positions, Visit&& visit) {
  const std::int64_t cols = slice.cols.size();
  for (std::int64_t p = positions.begin; p < positions.end; ++p)
    visit(slice.row(p / cols), slice.cols.begin + p % cols, p);
}

}  // namespace tessera::pod::internal
