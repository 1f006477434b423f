#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/read.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {

// Returns the number of columns of the files --input and --output-gradient, or --batch-size if
// there is neither. Throws Error{BadInput} if a file does not contain an operand of the right
// shape, if the batches of both differ, or if the layer's type does not hold one of the values.
std::int64_t batch_of(const Arguments& arguments, const Weights& weights);

// Returns an operand [rows][batch], read from a .npy file that batch_of() has checked, or drawn
// from the seed if the path is empty.
template <class T>
Matrix<T> make_operand(const std::string& path, std::int64_t rows, std::int64_t batch,
                       std::uint64_t seed) {
  if (path.empty()) return random_matrix<T>(rows, batch, seed);
  const io::Array file = io::read_npy(read_file(path), path);
  TESSERA_ASSERT((file.shape == std::vector<std::int64_t>{rows, batch}));
  Matrix<T> matrix(rows, batch);
  std::transform(file.values.begin(), file.values.end(), matrix.elements().begin(),
                 [](double value) { return T(float(value)); });
  return matrix;
}

// Returns the rows of a group in an operand that has those of all groups one below the other.
template <class T>
MatrixView<const T> rows_of_group(MatrixView<const T> whole, std::int64_t rows, std::size_t g) {
  const auto first = std::int64_t(g) * rows;
  return whole.sub({first, first + rows}, {0, whole.cols});
}

// Adds a file for the weight gradient of each group, if this build writes such files:
// weight_gradient.npz of one group, else weight_gradient_0.npz and on.
void keep_gradients(std::span<const sparse::Csr<float>> gradients,
                    std::vector<std::pair<std::string, std::string>>& files);

// Returns value / 2^scale_exponent. Throws Error{LimitExceeded}, which names the place, if that
// exceeds the range of double.
double unscaled(Pass pass, double value, std::int64_t row, std::int64_t col, int scale_exponent);

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
