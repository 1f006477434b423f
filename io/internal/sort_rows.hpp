#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::io::internal {

// A place that is given twice.
struct Twins {
  std::int64_t row = 0;
  std::int32_t col = 0;
};

// Sorts the columns of each row and moves `carried`, which has a number for each column or is
// empty, along; equal columns keep their order. Row r is [row_begin[r], row_begin[r + 1]).
// O(entries * bits of a column / 8), with a copy of the longest row for each thread.
template <class Carried>
void sort_rows(std::span<const std::int64_t> row_begin, std::span<std::int32_t> col,
               std::span<Carried> carried, Executor& executor);

// Returns the first place in sorted rows that is given twice.
std::optional<Twins> find_twins(std::span<const std::int64_t> row_begin,
                                std::span<const std::int32_t> col);

// Sorts the entries of each row of a matrix on the calling thread, and returns the first place that
// is given twice.
template <class T>
std::optional<Twins> sort_entries(sparse::Csr<T>& matrix);

}  // namespace tessera::io::internal
