#pragma once

#include <optional>

#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/study/timing.hpp"

// Passes of other libraries, in float. Each runs as a program of its own. The functions return no
// value if the library is not here.
namespace tessera::tools {

// Computes out [rows][z] = matrix * in [cols][z].

std::optional<study::MedianTimes> eigen_product(const sparse::Csr<float>& matrix,
                                                const Matrix<float>& in, Matrix<float>& out,
                                                int threads);

std::optional<study::MedianTimes> scipy_product(const sparse::Csr<float>& matrix,
                                                const Matrix<float>& in, Matrix<float>& out);

// Replaces the values of `gradient` by grad [rows][z] * transpose(in [cols][z]) at their places.
// Neither library has a function for it. With Eigen it is a dot product of two rows for each place,
// with SciPy NumPy's einsum over gathered rows.
std::optional<study::MedianTimes> eigen_gradient(sparse::Csr<float>& gradient,
                                                 const Matrix<float>& grad, const Matrix<float>& in,
                                                 int threads);

std::optional<study::MedianTimes> scipy_gradient(sparse::Csr<float>& gradient,
                                                 const Matrix<float>& grad,
                                                 const Matrix<float>& in);

}  // namespace tessera::tools
