#include "tessera/host/internal/batch_product.hpp"

#include <algorithm>

#include "tessera/codelets/batch_first.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host::internal {

// The lines of samples are read and written in no order that a prefetcher knows, so they have to be
// in the second-level cache; and the values are transposed for each call, which few samples do not
// pay for. Sapphire Rapids, time by that of operands with features first, and the same where
// operands are transposed: 256 x 256, density 0.05, batch 256 1.30 and 2.45; 512 x 512, density 0.1
// 1.40 and 1.75; 1024 x 1024, density 0.1, batch 64 1.28 and 1.38, batch 16 1.65 and 1.45; density
// 0.05, batch 256, which does not fit, 1.70 and 1.65.
bool BatchProduct::takes(MatrixView<const float> in) const {
  constexpr BlockShape kBlock{codelets::kBatchFirstSide, codelets::kBatchFirstSide};
  constexpr std::int64_t kFewestSamples = 32;
  const std::int64_t bytes =
      (problem.size.x + problem.size.y) * in.cols * std::int64_t(sizeof(float));
  const bool fits = in.cols >= kFewestSamples && bytes <= cpu.l2.value / 2;
  return problem.block == kBlock && in.row_stride == 1 && !in.rows_are_contiguous() && fits &&
         in.rows >= matrix.y_range(matrix.grid().splits.y - 1).end;
}

// Computes the sums of cell row `x` for the samples of `in`: sample z begins at out + z * stride.
void BatchProduct::add_cells(std::int64_t x, MatrixView<const float> in, float* out,
                             std::int64_t stride) const {
  const partitioner::Buckets& buckets = matrix.buckets();
  const std::int64_t y_parts = matrix.grid().splits.y;
  for (const Range rows : matrix.unnamed_rows(x))
    for (std::int64_t z = 0; z < in.cols; ++z)
      std::fill_n(out + z * stride + rows.begin, rows.size(), 0.0f);
  for (std::int64_t y = 0; y < y_parts; ++y) {
    const std::int64_t bucket = matrix.grid().bucket_index(x, y, 0);
    if (matrix.is_empty(bucket)) continue;
    codelets::batch_first_sums({.meta = buckets.meta_words(bucket),
                                .word_bits = matrix.grid().word_bits,
                                .values = values.data() + bucket * buckets.values_per_bucket(),
                                .sub_group = codelets::sub_group_id(x, y, y_parts),
                                .in = in.data + matrix.y_range(y).begin,
                                .in_stride = in.col_stride,
                                .out = out,
                                .out_stride = stride,
                                .z = in.cols,
                                .replaces = y == 0});
  }
}

// Computes one unit of work. Results that have the batch first and need no more work are added up
// where they belong; others are transposed first.
void BatchProduct::run_unit(std::int64_t x, const ProductCall<float>& call,
                            std::int64_t thread) const {
  ProductScratch<float>::Thread& own_scratch = call.scratch.threads[std::size_t(thread)];
  const Range rows = matrix.x_range(x);
  const Range own{std::min(rows.begin, call.out.rows), std::min(rows.end, call.out.rows)};
  const Range cols{0, call.in.cols};
  const MatrixView<float> part = call.out.sub(own, cols);
  const bool in_place = call.after.empty() && part.row_stride == 1 && own == rows;
  float* sums = in_place ? part.data : own_scratch.sums.data();
  const std::int64_t stride = in_place ? part.col_stride : rows.size();
  {
    const PassClock::Part kernels(call.scratch.clock, own_scratch.kernel_seconds);
    add_cells(x, call.in, sums, stride);
  }
  if (in_place) return;
  float* by_rows = sums + rows.size() * cols.size();
  codelets::transpose(sums, stride, cols.size(), rows.size(), by_rows, cols.size());
  if (!call.after.empty()) call.after.apply(by_rows, cols.size(), own, cols);
  copy_from_rows<float>(by_rows, cols.size(), part);
}

bool BatchProduct::product(const ProductCall<float>& call) const {
  if (!call.control.begin("panel of columns")) return false;
  const std::int64_t sums = problem.blocks * problem.block.area() * call.in.cols;
  call.scratch.begin(sums, call.executor.threads(), 2 * matrix.x_range(0).size() * call.in.cols);
  const auto& order = matrix.heaviest_first();
  SharedParts units(std::ssize(order));
  share_units(call.executor, sums, [&](std::int64_t thread) {
    while (const auto unit = units.next()) run_unit(order[std::size_t(unit->begin)], call, thread);
  });
  call.scratch.clock.add_to(call.times, call.scratch.threads);
  return true;
}

}  // namespace tessera::host::internal
