#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/read.hpp"
#include "tessera/tools/sparse_fc_layer/weights.hpp"

namespace tessera::tools {

// Returns the number of columns of the file --input, or --batch-size if there is no file. Throws
// Error{BadInput} if the file does not contain an S of the right shape, or if the layer's type does
// not hold one of its values.
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

// Returns value / 2^scale_exponent. Throws Error{LimitExceeded}, which names the place, if that
// exceeds the range of double.
double unscaled(Pass pass, double value, std::int64_t row, std::int64_t col, int scale_exponent);

// Returns dQ [outputs][batch], drawn from the seed.
template <class T>
Matrix<T> make_q_grad(const Arguments& a, const Weights& weights) {
  return random_matrix<T>(weights.rows, a.batch_size, a.seed + 2);
}

// Returns the .npy file of a result that is proportional to the weights, for the weights as they
// were given: the result divided by 2^scale_exponent. It has the layer's type if nothing is
// divided, else double. Throws Error{LimitExceeded} if a value exceeds the range of double.
template <class T>
std::string result_file(Pass pass, MatrixView<const T> result, int scale_exponent) {
  if (scale_exponent == 0) return io::write_npy(result);
  Matrix<double> given(result.rows, result.cols);
  for (std::int64_t r = 0; r < result.rows; ++r)
    for (std::int64_t c = 0; c < result.cols; ++c)
      given(r, c) = unscaled(pass, double(float(result(r, c))), r, c, scale_exponent);
  return io::write_npy(std::as_const(given).view());
}

}  // namespace tessera::tools
