#pragma once

#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Q = R * S as one writes it down: rows of R, their blocks, a row of S for each value. The compiler
// does the rest, for any computer of this kind and for this one.
void plain_product(const sparse::Csr<float>& weights, MatrixView<const float> s,
                   MatrixView<float> q);
void plain_product_native(const sparse::Csr<float>& weights, MatrixView<const float> s,
                          MatrixView<float> q);

}  // namespace tessera::bench
