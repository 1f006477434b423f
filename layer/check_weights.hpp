#pragma once

#include <span>

#include "tessera/base/problem.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::layer {

// Throws Error{InvalidArgument} if size or block of the matrix of a group are not those of the
// problem.
void check_weight_matrix(const Problem& problem, const sparse::Csr<float>& weights);

// Throws Error{InvalidArgument} if number, size or block of the matrices are not those of the
// problem, and the errors of sparse::check_range for a value that its type cannot hold.
void check_weights(const Problem& problem, std::span<const sparse::CheckedCsr<float>> weights);

}  // namespace tessera::layer
