#include "tessera/host/softmax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/softmax.hpp"

namespace tessera::host {
namespace {

void check_count(const sparse::Csr<float>& mask, std::size_t values, const char* name) {
  if (values == mask.values.size()) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("softmax of rows: {} has {} values; the mask has {}", name, values,
                          mask.values.size()));
}

// Calls run(rows, first) for shares of the block rows, where `rows` counts values from `first` on.
template <class Run>
void for_each_share(const sparse::Csr<float>& mask, Executor& executor, float scale,
                    const Run& run) {
  constexpr std::int64_t kShare = 8;  // block rows; a bit table of so many stays in a near cache
  const std::int64_t area = mask.block.area(), shares = ceil_div(mask.block_rows(), kShare);
  executor.for_each(shares, [&](std::int64_t share) {
    const std::int64_t begin = share * kShare, end = std::min(begin + kShare, mask.block_rows());
    const std::int64_t first = mask.row_begin[std::size_t(begin)] * area;
    std::vector<std::int32_t> bands;
    for (std::int64_t r = begin; r <= end; ++r)
      bands.push_back(static_cast<std::int32_t>(mask.row_begin[std::size_t(r)] * area - first));
    const auto kept_first = mask.values.begin() + first, kept_last = kept_first + bands.back();
    std::vector<std::uint32_t> kept;
    if (std::find(kept_first, kept_last, 0.0f) != kept_last) {
      kept.resize(std::size_t(ceil_div(bands.back(), 32)));
      for (std::int64_t i = 0; i < bands.back(); ++i)
        kept[std::size_t(i / 32)] |= std::uint32_t{kept_first[i] != 0} << (i % 32);
    }
    const bool elements = mask.block.is_element();
    run(codelets::SoftmaxRows{.row_begin = bands,
                              .run = elements ? 0 : mask.block.cols,
                              .kept = kept,
                              .scale = scale,
                              .height = elements ? 1 : mask.block.rows},
        first);
  });
}

}  // namespace

void softmax_rows(const sparse::Csr<float>& mask, std::span<const float> scores,
                  std::span<float> out, Executor& executor, float scale) {
  check_count(mask, scores.size(), "scores");
  check_count(mask, out.size(), "out");
  for_each_share(mask, executor, scale, [&](const codelets::SoftmaxRows& rows, std::int64_t first) {
    codelets::softmax(rows, scores.data() + first, out.data() + first);
  });
}

void softmax_rows_gradient(const sparse::Csr<float>& mask, std::span<const float> softmax,
                           std::span<const float> gradient, std::span<float> out,
                           Executor& executor, float scale) {
  check_count(mask, softmax.size(), "softmax");
  check_count(mask, gradient.size(), "gradient");
  check_count(mask, out.size(), "out");
  for_each_share(mask, executor, scale, [&](const codelets::SoftmaxRows& rows, std::int64_t first) {
    codelets::softmax_gradient(rows, softmax.data() + first, gradient.data() + first,
                               out.data() + first);
  });
}

}  // namespace tessera::host
