#pragma once

#include <cstdint>
#include <span>

#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/base/executor.hpp"

namespace tessera::arrays {

// An embedding picks rows of a table by their numbers, and its gradient has those rows only. T is
// float, double, Half or BFloat16. A row is a slice along the first dimension, of any rank. Costs
// depend on the number of ids and the size of a row, never on the number of rows of the table. The
// bits of a result do not depend on the number of threads.

// Returns the rows of the table with these numbers, in this order: [ids][...]. Throws
// Error{InvalidArgument} for an id outside the table, and Error{BadInput} for an illegal table.
// O(ids * row size).
template <class T>
DenseArray<T> embedding(std::span<const std::int64_t> ids, const DenseArray<T>& table,
                        Executor& executor);

// Returns the gradient of the table, [words][...], from that of the picked rows, [ids][...]. Its
// stored rows are the distinct ids; the gradients of an id that occurs several times are added in
// double in the order in which they occur, and rounded once. Throws Error{InvalidArgument} for an
// id outside 0..words - 1 and for another number of rows than ids.
// O(ids * (row size + bits of an id / 8)).
// Example: ids 4 1 4 with gradients 1 2 3 of one element each give rows 1 and 4 with 2 and 4.
template <class T>
RowSparse<T> embedding_gradient(std::span<const std::int64_t> ids, const DenseArray<T>& gradient,
                                std::int64_t words, Executor& executor);

}  // namespace tessera::arrays
