#pragma once

#include <functional>

#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Returns a function that writes q = elements * s with Eigen on the calling thread, from a
// row-major sparse matrix of its own; empty if Eigen was not found when this was built. The
// operands must outlive it.
std::function<void()> eigen_product(const sparse::Csr<float>& elements, const Matrix<float>& s,
                                    Matrix<float>& q);

}  // namespace tessera::bench
