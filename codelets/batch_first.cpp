#include "tessera/codelets/batch_first.hpp"

#include "tessera/base/block_shape.hpp"
#include "tessera/codelets/internal/fast/batch_sums.hpp"
#include "tessera/codelets/internal/fast/fast_kernels.hpp"
#include "tessera/codelets/kernel.hpp"

namespace tessera::codelets {
namespace {

template <class Word>
void sums_of(const BatchFirstSums& sums) noexcept {
  const KernelArgs walk{
      .meta = sums.meta, .sub_group = sums.sub_group, .block = {kBatchFirstSide, kBatchFirstSide}};
  internal::for_each_column_run<Word>(walk, [&](const internal::ColumnRun& run) {
    internal::batch_sums({.columns = run.columns,
                          .values = sums.values + run.value,
                          .in = sums.in,
                          .in_stride = sums.in_stride,
                          .out = sums.out + run.row,
                          .out_stride = sums.out_stride,
                          .z = sums.z,
                          .replaces = sums.replaces && run.is_first});
  });
}

}  // namespace

void batch_first_sums(const BatchFirstSums& sums) noexcept {
  if (sums.word_bits == 16) return sums_of<std::uint16_t>(sums);
  sums_of<std::uint32_t>(sums);
}

}  // namespace tessera::codelets
