// Sums of blocks that a list names, for a vector without gaps (listed_block_sums), for every
// instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/listed_blocks.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/codelets/internal/fast/one_column.inl"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// The blocks of one block row.
template <class In>
struct BlockList {
  const In* values;  // of the first block
  const std::uint32_t* columns;
  std::int64_t count;
  BlockShape block;
  const In* in;

  HWY_INLINE const In* row_of(std::int64_t b, std::int64_t row) const {
    return values + (b * block.rows + row) * block.cols;
  }
  HWY_INLINE const In* in_of(std::int64_t b) const {
    return in + std::int64_t{columns[b]} * block.cols;
  }
};

// Sets sums[r] to the sum of row rows.begin + r of the blocks. Column i of a row, counted through
// all its blocks, is in lane i % kSumLanes.
#if HWY_TARGET == HWY_SCALAR

template <std::size_t kCols, class In>
HWY_INLINE void sums_of_rows(const BlockList<In>& blocks, Range rows, float* sums) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    std::array<float, kSumLanes> lanes{};
    for (std::int64_t b = 0; b < blocks.count; ++b)
      for (std::int64_t c = 0; c < blocks.block.cols; ++c) {
        float& lane = lanes[std::size_t((b * blocks.block.cols + c) % kSumLanes)];
        lane = add_product(lane, blocks.row_of(b, row)[c], blocks.in_of(b)[c]);
      }
    *sums++ = add_lanes(lanes) + 0.0f;
  }
}

#else

// The vectors of sums of one row, for blocks of 4 or 8 columns, or of 16 or several times as many.
template <std::size_t kCols>
struct ColumnLanes {
  static constexpr std::size_t kLanes = std::min(kCols, kNativeLanes);
  static constexpr std::size_t kParts = kSumLanes / kLanes;  // vectors of a row
  static constexpr std::size_t kVectors = kCols / kLanes;    // of a block, or of 16 columns of it
  static constexpr std::int64_t kTurn = kSumLanes / kCols;   // blocks that have all lanes
  // Sums take half of the registers; values and input are in the others.
  static constexpr std::size_t kRows = (kManyRegisters ? 16 : 8) / kParts;
};

// Adds block `b`, whose first lanes are vector `part`, to the sums of kRows rows.
template <std::size_t kCols, std::size_t kRows, class In, class Sums>
HWY_INLINE void add_block(const BlockList<In>& blocks, std::int64_t b, std::int64_t row,
                          std::size_t part, Sums& sums) {
  using Lanes = ColumnLanes<kCols>;
  const std::int64_t cols = kCols < kSumLanes ? std::int64_t{kCols} : blocks.block.cols;
  const In* in = blocks.in_of(b);
  const In* values = blocks.row_of(b, row);
  for (std::int64_t c = 0; c < cols; c += std::int64_t{kCols})
    for (std::size_t v = 0; v < Lanes::kVectors; ++v) {
      const auto at = c + static_cast<std::int64_t>(v * Lanes::kLanes);
      const auto column = load_lanes<Lanes::kLanes>(in + at);
      for (std::size_t r = 0; r < kRows; ++r) {
        const In* of_row = values + static_cast<std::int64_t>(r) * cols + at;
        sums[r][part + v] =
            add_product_lanes(sums[r][part + v], load_lanes<Lanes::kLanes>(of_row), column);
      }
    }
}

template <std::size_t kCols, std::size_t kRows, class In>
HWY_INLINE void sums_of_some(const BlockList<In>& blocks, std::int64_t row, float* result) {
  using Lanes = ColumnLanes<kCols>;
  constexpr std::size_t kFour = 4;
  FloatVector<Lanes::kLanes> sums[kRows][Lanes::kParts];
  for (auto& of_row : sums)
    for (auto& part : of_row) part = hn::Zero(Floats<Lanes::kLanes>());
  for (std::int64_t b = 0; b < blocks.count; b += Lanes::kTurn)
    for (std::int64_t t = 0; t < Lanes::kTurn && b + t < blocks.count; ++t)
      add_block<kCols, kRows>(blocks, b + t, row, static_cast<std::size_t>(t) * Lanes::kVectors,
                              sums);
  if constexpr (kRows % kFour == 0) {
    for (std::size_t first = 0; first < kRows; first += kFour) {
      FloatVector<4> folded[kFour];
      for (std::size_t r = 0; r < kFour; ++r)
        folded[r] = fold_parts<Lanes::kLanes>(sums[first + r]);
      hn::StoreU(finish_four(folded), Floats<4>(), result + first);
    }
  } else {
    for (std::size_t r = 0; r < kRows; ++r) result[r] = finish_lanes<Lanes::kLanes>(sums[r]);
  }
}

template <std::size_t kCols, class In>
HWY_INLINE void sums_of_rows(const BlockList<In>& blocks, Range rows, float* sums) {
  constexpr std::size_t kRows = ColumnLanes<kCols>::kRows;
  std::int64_t row = rows.begin;
  for (; row + std::int64_t{kRows} <= rows.end; row += std::int64_t{kRows}, sums += kRows)
    sums_of_some<kCols, kRows>(blocks, row, sums);
  for (; row < rows.end; ++row) sums_of_some<kCols, 1>(blocks, row, sums++);
}

#endif

template <std::size_t kCols, class In>
HWY_NOINLINE void block_rows(const ListedSums<In>& args) {
  constexpr std::int64_t kAtOnce = 64;  // rows
  float sums[kAtOnce];
  float* out = args.out;
  for (std::size_t block_row = 0; block_row + 1 < args.row_begin.size(); ++block_row) {
    const std::int64_t begin = args.row_begin[block_row];
    const BlockList<In> blocks{args.values + begin * args.block.area(), args.columns + begin,
                               args.row_begin[block_row + 1] - begin, args.block, args.in};
    for (std::int64_t first = 0; first < args.block.rows; first += kAtOnce) {
      const Range rows{first, std::min(first + kAtOnce, args.block.rows)};
      sums_of_rows<kCols>(blocks, rows, sums);
      for (std::int64_t r = 0; r < rows.size(); ++r, out += args.out_stride)
        *out = (args.replaces ? 0.0f : *out) + sums[r];
    }
  }
}

template <class In>
HWY_INLINE void listed_blocks(const ListedSums<In>& args) {
  if (args.block.cols == 4) return block_rows<4>(args);
  if (args.block.cols == 8) return block_rows<8>(args);
  block_rows<16>(args);
}
void listed_blocks_float(const ListedSums<float>& args) { listed_blocks(args); }
void listed_blocks_half(const ListedSums<Half>& args) { listed_blocks(args); }
void listed_blocks_bfloat16(const ListedSums<BFloat16>& args) { listed_blocks(args); }

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {

HWY_EXPORT(listed_blocks_float);
HWY_EXPORT(listed_blocks_half);
HWY_EXPORT(listed_blocks_bfloat16);

void listed_block_sums(const ListedSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_blocks_float)(sums);
}
void listed_block_sums(const ListedSums<Half>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_blocks_half)(sums);
}
void listed_block_sums(const ListedSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_blocks_bfloat16)(sums);
}

}  // namespace tessera::codelets::internal
#endif
