#include "tessera/arrays/row_sparse/embedding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "tessera/arrays/internal/shape.hpp"
#include "tessera/arrays/internal/sort_entries.hpp"
#include "tessera/arrays/ops/element.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"

namespace tessera::arrays {
namespace {

void require_ids(std::span<const std::int64_t> ids, std::int64_t words) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= words)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("embedding: ids[{}] is {}; the table has rows in {}", i, ids[i],
                              range_of_indices(words)));
}

template <class T>
std::int64_t rows_in(const DenseArray<T>& array, const char* what) {
  check(array);
  if (array.shape.empty())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("embedding: the {} has no dimension; it needs one of rows", what));
  return array.shape[0];
}

std::int64_t row_size_of(std::vector<std::int64_t> shape) {
  shape[0] = 1;
  return internal::checked_elements(shape);
}

// An id and its position in the list.
struct IdAt {
  std::uint64_t key;
  std::int64_t position;
};

}  // namespace

template <class T>
DenseArray<T> embedding(std::span<const std::int64_t> ids, const DenseArray<T>& table,
                        Executor& executor) {
  require_ids(ids, rows_in(table, "table"));
  const std::int64_t size = row_size_of(table.shape);
  DenseArray<T> result{table.shape, {}};
  result.shape[0] = std::ssize(ids);
  result.values.resize(static_cast<std::size_t>(internal::checked_elements(result.shape)));
  constexpr std::int64_t kIds = 256;
  executor.for_each((std::ssize(ids) + kIds - 1) / kIds, [&](std::int64_t part) {
    const std::int64_t end = std::min(std::ssize(ids), (part + 1) * kIds);
    for (std::int64_t i = part * kIds; i < end; ++i)
      std::copy_n(table.values.begin() + ids[std::size_t(i)] * size, size,
                  result.values.begin() + i * size);
  });
  return result;
}

template <class T>
RowSparse<T> embedding_gradient(std::span<const std::int64_t> ids, const DenseArray<T>& gradient,
                                std::int64_t words, Executor& executor) {
  require_ids(ids, words);
  if (rows_in(gradient, "gradient") != std::ssize(ids))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("embedding: {} ids and a gradient of {}; it needs one row for each id",
                            ids.size(), internal::shape_text(gradient.shape)));
  internal::RawVector<IdAt> sorted(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    sorted[i] = {static_cast<std::uint64_t>(ids[i]), static_cast<std::int64_t>(i)};
  internal::sort_entries(sorted, 0, words <= 1 ? 0 : int(std::bit_width(std::uint64_t(words - 1))),
                         executor);
  RowSparse<T> result{gradient.shape, {}, {}};
  result.shape[0] = words;
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (i == 0 || sorted[i].key != sorted[i - 1].key) {
      starts.push_back(i);
      result.rows.push_back(static_cast<std::int64_t>(sorted[i].key));
    }
  starts.push_back(sorted.size());
  const auto size = static_cast<std::size_t>(row_size_of(gradient.shape));
  result.values.resize(result.rows.size() * size);
  executor.for_each(result.stored(), [&](std::int64_t row) {
    std::vector<double> sums(size);
    for (std::size_t i = starts[std::size_t(row)]; i < starts[std::size_t(row) + 1]; ++i) {
      const T* from = gradient.values.data() + std::size_t(sorted[i].position) * size;
      for (std::size_t k = 0; k < size; ++k) sums[k] += cast_value<double>(from[k]);
    }
    for (std::size_t k = 0; k < size; ++k)
      result.values[std::size_t(row) * size + k] = cast_value<T>(sums[k]);
  });
  return result;
}

#define TESSERA_INSTANTIATE_EMBEDDING(T)                                                        \
  template DenseArray<T> embedding(std::span<const std::int64_t>, const DenseArray<T>&,         \
                                   Executor&);                                                  \
  template RowSparse<T> embedding_gradient(std::span<const std::int64_t>, const DenseArray<T>&, \
                                           std::int64_t, Executor&);

TESSERA_INSTANTIATE_EMBEDDING(float)
TESSERA_INSTANTIATE_EMBEDDING(double)
TESSERA_INSTANTIATE_EMBEDDING(Half)
TESSERA_INSTANTIATE_EMBEDDING(BFloat16)

#undef TESSERA_INSTANTIATE_EMBEDDING

}  // namespace tessera::arrays
