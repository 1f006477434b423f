#include "tessera/bench/host/dense_rows.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t kRows = 4;

template <std::int64_t kCount>
void multiply(const BFloat16* r, std::int64_t cols, const BFloat16* s, float* q) {
  float sums[kCount] = {};
  for (std::int64_t y = 0; y < cols; ++y)
    for (std::int64_t i = 0; i < kCount; ++i) sums[i] += float(r[i * cols + y]) * float(s[y]);
  for (std::int64_t i = 0; i < kCount; ++i) q[i] = sums[i];
}

}  // namespace

void multiply_dense_rows(const BFloat16* r, std::int64_t rows, std::int64_t cols, const BFloat16* s,
                         float* q) {
  std::int64_t x = 0;
  for (; x + kRows <= rows; x += kRows) multiply<kRows>(r + x * cols, cols, s, q + x);
  for (; x < rows; ++x) multiply<1>(r + x * cols, cols, s, q + x);
}

}  // namespace tessera::bench
