#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/host/sparse_views.hpp"

// The checks that every call on views of the caller's lists (sparse_views.hpp) begins with. `call`
// is its name for messages.
namespace tessera::host::internal {

// States whether a call reads the values of a view, which must then be as many as the places need.
enum class Values { Read, NotRead };

// Throw Error{InvalidArgument} for sizes that are not whole blocks, Error{LimitExceeded} for sides
// that a kernel cannot count and blocks of 16-bit values that none takes, and Error{BadInput} with
// the place if the lists are not those of a matrix of this size.
template <class T, class Index, class Position>
void check_view(std::string_view call, const CompressedRows<T, Index, Position>& a, Values values,
                Executor& executor);
template <class T, class Index, class Position>
void check_view(std::string_view call, const CompressedColumns<T, Index, Position>& a,
                Values values, Executor& executor);
template <class T, class Index>
void check_view(std::string_view call, const Coordinates<T, Index>& a, Values values,
                Executor& executor);

// The two halves of the check of compressed rows, for calls that read the columns once only: all
// but the columns, and whether those of some places are inside the matrix.
template <class T, class Index, class Position>
void check_all_but_columns(std::string_view call, const CompressedRows<T, Index, Position>& a,
                           Values values);
template <class T, class Index, class Position>
bool columns_are_inside(const CompressedRows<T, Index, Position>& a, Range places);

// Returns the positions [rows + 1] at which the rows of a checked list begin, or an empty list if
// its rows do not ascend. O(places + rows).
template <class T, class Index>
std::vector<std::int64_t> row_positions(const Coordinates<T, Index>& a);

}  // namespace tessera::host::internal
