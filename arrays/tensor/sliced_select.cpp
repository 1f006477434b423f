#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/arrays/tensor/sliced_csr.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::arrays {
namespace {

// A column of the original with its new number.
struct Move {
  std::int64_t from, to;
};

// Returns the indices that a selector takes of a dimension; none is negative.
std::vector<std::int64_t> taken(const Selector& selector, std::int64_t length,
                                std::int64_t dimension) {
  if (const auto* list = std::get_if<Specified>(&selector))
    return resolve(*list, length, dimension);
  const Range range = resolve(contiguous(selector), length, dimension);
  std::vector<std::int64_t> indices(std::size_t(range.size()));
  std::iota(indices.begin(), indices.end(), range.begin);
  return indices;
}

std::vector<Move> moves_of(const std::vector<std::int64_t>& cols) {
  std::vector<Move> moves;
  for (std::size_t to = 0; to < cols.size(); ++to) moves.push_back({cols[to], std::int64_t(to)});
  std::ranges::stable_sort(moves, {}, &Move::from);
  return moves;
}

template <class T>
std::vector<std::pair<std::int32_t, T>> moved_row(const SlicedCsr<T>& matrix, std::int64_t r,
                                                  const std::vector<Move>& moves) {
  std::vector<std::pair<std::int32_t, T>> entries;
  const Range seen = matrix.row(r);
  for (std::int64_t k = seen.begin; k < seen.end; ++k) {
    const std::int64_t col = matrix.arrays().columns[std::size_t(k)] - matrix.first_col();
    const auto to = std::ranges::equal_range(moves, col, {}, &Move::from);
    for (const Move& move : to)
      entries.emplace_back(std::int32_t(move.to), matrix.arrays().values[std::size_t(k)]);
  }
  std::ranges::sort(entries, {}, &std::pair<std::int32_t, T>::first);
  return entries;
}

}  // namespace

template <class T>
SlicedCsr<T> select(const SlicedCsr<T>& matrix, const Selector& rows, const Selector& cols) {
  if (std::holds_alternative<NewAxis>(rows) || std::holds_alternative<NewAxis>(cols))
    throw Error(ErrorCode::InvalidArgument,
                "a matrix takes no new axis; make a tensor of it with to_tensor");
  if (!std::holds_alternative<Specified>(rows) && !std::holds_alternative<Specified>(cols))
    return matrix.view(contiguous(rows), contiguous(cols));
  const auto rows_taken = taken(rows, matrix.rows(), 0), cols_taken = taken(cols, matrix.cols(), 1);
  const std::vector<Move> moves = moves_of(cols_taken);
  CsrArrays<T> own{std::ssize(rows_taken), std::ssize(cols_taken), {}, {}, {}, {}};
  checked_int32(own.cols, "columns of a csr");
  for (const std::int64_t r : rows_taken) {
    own.row_begin.push_back(std::ssize(own.values));
    for (const auto& [col, value] : moved_row(matrix, r, moves)) {
      own.columns.push_back(col);
      own.values.push_back(value);
    }
    own.row_end.push_back(std::ssize(own.values));
  }
  return SlicedCsr<T>(std::move(own));
}

#define TESSERA_INSTANTIATE_SELECT(T) \
  template SlicedCsr<T> select(const SlicedCsr<T>&, const Selector&, const Selector&);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_SELECT)

#undef TESSERA_INSTANTIATE_SELECT

}  // namespace tessera::arrays
