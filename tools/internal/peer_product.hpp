#pragma once

#include <optional>

#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/internal/host_timing.hpp"

// Products of other libraries: out [rows][z] = matrix * in [cols][z], in float. Each runs as a
// program of its own. Returns no value if the library is not here.
namespace tessera::tools::internal {

std::optional<MedianTimes> eigen_product(const sparse::Csr<float>& matrix, const Matrix<float>& in,
                                         Matrix<float>& out, int threads);

std::optional<MedianTimes> scipy_product(const sparse::Csr<float>& matrix, const Matrix<float>& in,
                                         Matrix<float>& out);

}  // namespace tessera::tools::internal
