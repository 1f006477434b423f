#pragma once

#include <algorithm>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/read.hpp"
#include "tessera/tools/sparse_fc_layer/weights.hpp"

namespace tessera::tools {

// Returns the number of columns of the file --input, or --batch-size if there is no file. Throws
// Error{BadInput} if the file does not contain an S of the right shape.
std::int64_t batch_of(const Arguments& arguments, const Weights& weights);

// Returns S [inputs][batch], read from the file or drawn from the seed. The batch of the file is
// that of the arguments.
template <class T>
Matrix<T> make_s(const Arguments& a, const Weights& weights) {
  if (a.input.empty()) return random_matrix<T>(weights.cols, a.batch_size, a.seed + 1);
  const io::Array file = io::read_npy(read_file(a.input), a.input);
  TESSERA_ASSERT((file.shape == std::vector<std::int64_t>{weights.cols, a.batch_size}));
  Matrix<T> matrix(weights.cols, a.batch_size);
  std::transform(file.values.begin(), file.values.end(), matrix.elements().begin(),
                 [](double value) { return T(float(value)); });
  return matrix;
}

// Returns dQ [outputs][batch], drawn from the seed.
template <class T>
Matrix<T> make_q_grad(const Arguments& a, const Weights& weights) {
  return random_matrix<T>(weights.rows, a.batch_size, a.seed + 2);
}

}  // namespace tessera::tools
