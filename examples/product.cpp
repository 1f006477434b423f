// Multiplies a sparse matrix that is kept in compressed rows, as SciPy, PyTorch or another program
// keeps it, with a vector and with a batch, and computes the gradient of its values. Nothing is
// copied or encoded, except where it is prepared for many products. The exit code is 1 if a result
// is wrong.

#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "tessera/tessera.hpp"

int main() {
  using namespace tessera;
  // The matrix  [ 1  0  2 ]
  //             [ 0  3  0 ].
  const std::vector<std::int64_t> row_begin{0, 2, 3}, col{0, 2, 1};
  const std::vector<float> values{1, 2, 3};
  const host::CompressedRows<float, std::int64_t> a{
      .rows = 2, .cols = 3, .row_begin = row_begin, .col = col, .values = values};
  const auto executor = make_executor();

  const std::vector<float> vector{1, 10, 100};
  std::vector<float> result(2);
  host::spmv<float>(a, vector, result, *executor);
  std::printf("A * vector           = %.0f %.0f\n", result[0], result[1]);

  // Two samples with their features side by side: the batch first. Bias and ReLU are added while
  // the results are in a cache.
  const std::vector<float> batch{1, 10, 100, -1, -10, -100}, bias{0.5f, -0.5f};
  std::vector<float> outputs(4);
  const MatrixView<const float> samples{batch.data(), 2, 3, 3};
  host::spmm<float>(a, samples.transposed(),
                    MatrixView<float>{outputs.data(), 2, 2, 2}.transposed(), *executor,
                    {.bias = bias, .activation = host::Activation::Relu});
  std::printf("ReLU(A * batch + b)  = %.1f %.1f | %.1f %.1f\n", outputs[0], outputs[1], outputs[2],
              outputs[3]);
  // The gradient of the values: the product of dQ and the transposed S where A has places.
  const std::vector<float> q_grad{1, 1, 1, -1};
  std::vector<float> gradients(3);
  host::sddmm<float>(a, MatrixView<const float>{q_grad.data(), 2, 2, 2}, samples,
                     std::span(gradients), *executor);
  std::printf("gradients            = %.0f %.0f %.0f\n", gradients[0], gradients[1], gradients[2]);

  // A matrix that is multiplied often is encoded once; several threads may use it.
  const host::Prepared<float> prepared(a, *executor);
  std::vector<float> again(2);
  prepared.spmm({vector.data(), 3, 1, 1}, {again.data(), 2, 1, 1}, *executor);
  const bool right = again == result && gradients == std::vector<float>{0, 0, 20} &&
                     result == std::vector<float>{201, 30} &&
                     outputs == std::vector<float>{201.5f, 29.5f, 0, 0};
  return right ? 0 : 1;
}
