// Block GradATransposed (block_transposed_sums) for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/block_transposed_sums.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include "tessera/codelets/internal/fast/block_tiles.inl"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// The sums of each block stay in registers over its rows.
template <class In>
HWY_INLINE void transposed(const BlockSums<In>& args) {
  Scratch<In> scratch;
  const AnyWalk walk{.height = 1, .depth = args.cols, .terms = args.rows};
  const auto in_row = static_cast<std::uint32_t>(args.row);
  const auto blocks = static_cast<std::int64_t>(args.columns.size());
  for (std::int64_t done = 0; done < blocks;) {
    BlockRun<In, AnyWalk> run = run_of(args, walk, scratch, done, blocks);
    run.in_row = &in_row;
    run.known = 1;
    add_all(run, args.out, args.out_stride, args.cols, args.z, args.columns.data() + done);
    done += run.blocks;
  }
}

void transposed_float(const BlockSums<float>& args) { transposed(args); }
void transposed_half(const BlockSums<Half>& args) { transposed(args); }
void transposed_bfloat16(const BlockSums<BFloat16>& args) { transposed(args); }

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {

HWY_EXPORT(transposed_float);
HWY_EXPORT(transposed_half);
HWY_EXPORT(transposed_bfloat16);

void block_transposed_sums(const BlockSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(transposed_float)(sums);
}
void block_transposed_sums(const BlockSums<Half>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(transposed_half)(sums);
}
void block_transposed_sums(const BlockSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(transposed_bfloat16)(sums);
}

}  // namespace tessera::codelets::internal
#endif
