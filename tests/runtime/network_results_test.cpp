#include "tessera/runtime/internal/network_results.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/runtime/loss_check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

TEST(LargestResults, AreThoseOfDenseProductsWhereBlocksHangOver) {
  NetworkSpec spec;
  spec.layers = {{.outputs = 5, .inputs = 7, .block = {2, 3}},
                 {.outputs = 3, .inputs = 5, .block = {4, 4}}};
  const std::vector<internal::PlainLayer> layers = {{random_weights(6, 9, {2, 3}, 0.6, 1), {}},
                                                    {random_weights(4, 8, {4, 4}, 1, 2), {}}};
  const Matrix<float> inputs = random_matrix<float>(7, 4, 3);
  Matrix<float> result = inputs;
  std::vector<double> expected;
  for (std::size_t l = 0; l < 2; ++l) {
    const Matrix<float> in = result, weights = sparse::to_dense(layers[l].weights);
    result = Matrix<float>(spec.layers[l].outputs, 4);
    for (std::int64_t row = 0; row < result.rows(); ++row)
      for (std::int64_t col = 0; col < in.rows(); ++col)
        for (std::int64_t z = 0; z < 4; ++z) result(row, z) += weights(row, col) * in(col, z);
    expected.push_back(largest_magnitude<float>(std::as_const(result).view()));
  }
  EXPECT_EQ(internal::largest_results(spec, layers, inputs.view()), expected);
}

}  // namespace
}  // namespace tessera::runtime
