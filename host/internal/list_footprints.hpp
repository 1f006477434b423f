#pragma once

#include <array>

#include "tessera/base/overlap.hpp"
#include "tessera/host/sparse_views.hpp"

namespace tessera::host::internal {

// The memory of the lists of a view (sparse_views.hpp), which no result may share: the lists are
// checked, and read again after parts of the result were written.
using ListFootprints = std::array<Footprint, 3>;

template <class T, class Index, class Position>
ListFootprints lists_of(const CompressedRows<T, Index, Position>& a) {
  return {footprint("the row positions of A", a.row_begin), footprint("the columns of A", a.col),
          footprint("the values of A", a.values)};
}

template <class T, class Index, class Position>
ListFootprints lists_of(const CompressedColumns<T, Index, Position>& a) {
  return {footprint("the column positions of A", a.col_begin), footprint("the rows of A", a.row),
          footprint("the values of A", a.values)};
}

template <class T, class Index>
ListFootprints lists_of(const Coordinates<T, Index>& a) {
  return {footprint("the rows of A", a.row), footprint("the columns of A", a.col),
          footprint("the values of A", a.values)};
}

}  // namespace tessera::host::internal
