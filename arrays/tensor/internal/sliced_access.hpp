#pragma once

#include "tessera/arrays/tensor/sliced_csr.hpp"

namespace tessera::arrays::internal {

// Access to the arrays that a sliced matrix shares with its views, for the sources of this folder.
template <class T>
struct SlicedAccess {
  static CsrArrays<T>& arrays(SlicedCsr<T>& matrix) { return *matrix.arrays_; }
};

}  // namespace tessera::arrays::internal
