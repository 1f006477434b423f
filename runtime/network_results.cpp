#include "tessera/runtime/internal/network_results.hpp"

#include <utility>

#include "tessera/codelets/activation.hpp"
#include "tessera/runtime/loss_check.hpp"
#include "tessera/sparse/row_values.hpp"

namespace tessera::runtime::internal {
namespace {

// Returns the product of weights and inputs. Blocks may hang over the edge of the layer.
template <class T>
Matrix<T> product(const NetworkLayer& layer, const sparse::Csr<float>& weights,
                  const Matrix<T>& inputs) {
  Matrix<float> sums(layer.outputs, inputs.cols());
  for (std::int64_t row = 0; row < layer.outputs; ++row)
    sparse::for_each_in_row(weights, row, [&](std::size_t value, std::int64_t col) {
      if (col >= layer.inputs) return;
      for (std::int64_t z = 0; z < sums.cols(); ++z)
        sums(row, z) += weights.values[value] * float(inputs(col, z));
    });
  Matrix<T> result(sums.rows(), sums.cols());
  for (std::int64_t row = 0; row < sums.rows(); ++row)
    for (std::int64_t z = 0; z < sums.cols(); ++z) result(row, z) = T(sums(row, z));
  return result;
}

}  // namespace

std::vector<double> largest_results(const NetworkSpec& spec, std::span<const PlainLayer> layers,
                                    MatrixView<const float> inputs) {
  std::vector<double> largest;
  with_type(spec.data_type, [&]<class T>(T) {
    Matrix<T> result(inputs.rows, inputs.cols);
    for (std::int64_t row = 0; row < inputs.rows; ++row)
      for (std::int64_t z = 0; z < inputs.cols; ++z) result(row, z) = T(inputs(row, z));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const NetworkLayer& layer = spec.layers[l];
      result = product(layer, layers[l].weights, result);
      const std::int64_t rows = result.rows(), cols = result.cols();
      codelets::add_bias_and_activate<T>({0, rows * cols, cols}, layers[l].bias.data(),
                                         layer.activation, result.elements().data(),
                                         result.elements().data());
      largest.push_back(largest_magnitude<T>(std::as_const(result).view()));
    }
  });
  return largest;
}

}  // namespace tessera::runtime::internal
