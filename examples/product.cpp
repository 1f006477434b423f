// Multiplies a sparse matrix that is kept in compressed rows, as SciPy, PyTorch or another program
// keeps it, with a vector and with a batch. Nothing is copied or encoded. The exit code is 1 if a
// result is wrong.

#include <cstdint>
#include <cstdio>
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
  const bool right =
      result == std::vector<float>{201, 30} && outputs == std::vector<float>{201.5f, 29.5f, 0, 0};
  return right ? 0 : 1;
}
