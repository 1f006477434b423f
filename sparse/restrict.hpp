#pragma once

#include <cstdint>

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Returns the blocks of `pattern` with the values of `matrix`; a value is zero where `matrix`
// stores nothing and beyond its sides. The two may have different sizes and blocks. Both are
// checked by the rules of check.hpp (Error{BadInput}).
// O(values of the pattern + blocks of the matrix).
// Example: a matrix of dense 16 x 16 blocks at the non-zeros of an element pattern.
template <class T>
Csr<T> on_pattern(const Csr<T>& matrix, const Csr<T>& pattern);

// Returns the stored elements in the first `rows` rows and the first `cols` columns. Throws
// Error{InvalidArgument} unless `elements` is an element matrix of at least that size. O(elements).
template <class T>
Csr<T> cropped(const Csr<T>& elements, std::int64_t rows, std::int64_t cols);

}  // namespace tessera::sparse
