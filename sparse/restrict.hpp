#pragma once

#include <cstdint>

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// The blocks of `pattern` with the values of `matrix`, zero where it stores nothing and beyond its
// sides. The two may have any blocks. O(values of the pattern + blocks of the matrix).
// Example: a matrix of dense 16 x 16 blocks at the non-zeros of an element pattern.
template <class T>
Csr<T> on_pattern(const Csr<T>& matrix, const Csr<T>& pattern);

// The stored elements in the first rows and columns. For an element matrix with at least that many,
// else Error{InvalidArgument}. O(elements).
template <class T>
Csr<T> cropped(const Csr<T>& elements, std::int64_t rows, std::int64_t cols);

}  // namespace tessera::sparse
