#pragma once

#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Computes Q = R * S by the plain loops: over the rows of R, their blocks, and one row of S for
// each value. The compiler vectorises them for this computer and for the baseline of its kind.
void plain_product(const sparse::Csr<float>& weights, MatrixView<const float> s,
                   MatrixView<float> q);
void plain_product_native(const sparse::Csr<float>& weights, MatrixView<const float> s,
                          MatrixView<float> q);

}  // namespace tessera::bench
