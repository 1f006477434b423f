#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>

#include "tessera/tessera.hpp"

int main() {
  using namespace tessera;
  const Problem problem{.size = {1, 1024, 768, 64}, .density = 0.1, .data_type = DataType::Float};
  const auto executor = make_executor();
  host::HostLayer layer(problem, host::read_host_cpu(), *executor);

  Matrix<float> s(768, 64), q(1024, 64);
  std::fill(s.elements().begin(), s.elements().end(), 1.0f);
  for (const std::uint64_t seed : {1, 2, 3}) {  // the pattern changes, the layer stays
    layer.set_weights(sparse::random_pattern(1024, 768, {1, 1}, /*density=*/0.1, seed));
    layer.forward<float>(s.view(), q.view());  // Q = R * S
    const double sum = std::accumulate(q.elements().begin(), q.elements().end(), 0.0);
    std::printf("pattern %lu: %ld weights, sum of Q %.0f\n", seed, layer.values(), sum);
  }

  // The same product without a layer: compressed rows in the caller's memory are read in place.
  const auto csr = sparse::random_pattern(1024, 768, {1, 1}, /*density=*/0.1, /*seed=*/1);
  const host::CompressedRows<float, std::int32_t, std::int64_t> rows{
      csr.rows, csr.cols, csr.block, csr.row_begin, csr.col, csr.values};
  host::spmm<float>(rows, s.view(), q.view(), *executor);
  const double sum = std::accumulate(q.elements().begin(), q.elements().end(), 0.0);
  std::printf("pattern 1 by host::spmm: sum of Q %.0f\n", sum);
}
