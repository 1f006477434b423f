// Element Fwd for words that are byte offsets into the operand, for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/offset_sums.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"
#include "tessera/codelets/internal/fast/one_column.inl"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// Eight vectors of sums leave registers for a factor and a product if there are 16.
inline constexpr std::size_t kMostOffsetVectors = kInstrumented ? 2 : 8;
// An addition takes four cycles, so one or two vectors of sums would wait for themselves. The rows
// of a record are in order of falling length, so neighbours end at about the same term.
constexpr std::size_t offset_rows_at_once(std::size_t vectors) {
  return vectors == 1 ? 4 : vectors == 2 ? 2 : 1;
}

template <class In, class Word>
struct OffsetRow {
  const Word* words;
  const In* values;
  std::int64_t count;
  float* out;
};

// Iterates over the rows of a record.
template <class In, class Word>
class OffsetRows {
 public:
  HWY_INLINE OffsetRows(const OffsetSums<In, Word>& args, std::int64_t first_column)
      : words_(args.words),
        values_(args.values),
        out_(args.out + first_column),
        out_stride_(args.out_stride) {}

  HWY_INLINE OffsetRow<In, Word> next() {
    const auto row = static_cast<std::int64_t>(words_[0]);
    const auto count = static_cast<std::int64_t>(words_[1]);
    const OffsetRow<In, Word> result{words_ + kWords<OutputEntry>, values_, count,
                                     out_ + row * out_stride_};
    words_ += kWords<OutputEntry> + count;
    values_ += count;
    return result;
  }

 private:
  const Word* words_;
  const In* values_;
  float* out_;
  std::int64_t out_stride_;
};

// With kWhole the vectors of the panel do not overlap.
template <class In, class Word, std::size_t kLanes, std::size_t kVectors, bool kWhole>
struct OffsetPanel {
  using Sums = FloatVector<kLanes>[kVectors];
  const std::byte* in;  // first column of the panel
  const std::int64_t spread;
  const Panel panel;
  const bool replaces;

  HWY_INLINE std::int64_t column(std::size_t v) const {
    return kWhole ? static_cast<std::int64_t>(v * kLanes) : column_of<kLanes, kVectors>(panel, v);
  }
  HWY_INLINE void begin(Sums& sums, const float* from) const {
    if (replaces) {
      for (auto& sum : sums) sum = hn::Zero(Floats<kLanes>());
      return;
    }
    for (std::size_t v = 0; v < kVectors; ++v) sums[v] = load_lanes<kLanes>(from + column(v));
  }
  HWY_INLINE void store(const Sums& sums, float* to) const {
    for (std::size_t v = 0; v < kVectors; ++v)
      hn::StoreU(sums[v], Floats<kLanes>(), to + column(v));
  }
  HWY_INLINE void add(Sums& sums, const OffsetRow<In, Word>& row, std::int64_t i) const {
    const In* from =
        reinterpret_cast<const In*>(in_register(in + std::int64_t{row.words[i]} * spread));
    const auto factor = broadcast<kLanes>(row.values + i);
    for (std::size_t v = 0; v < kVectors; ++v)
      sums[v] = add_product_lanes(sums[v], factor, load_lanes<kLanes>(from + column(v)));
  }

  // Adds kRows rows side by side while each has terms, then one after the other. The rows differ.
  template <std::size_t kRows>
  HWY_INLINE void add_rows(OffsetRows<In, Word>& rows) const {
    Sums sums[kRows];
    OffsetRow<In, Word> row[kRows];
    std::int64_t common = 0;
    for (std::size_t r = 0; r < kRows; ++r) {
      row[r] = rows.next();
      begin(sums[r], row[r].out);
      common = r == 0 ? row[r].count : std::min(common, row[r].count);
    }
    for (std::int64_t i = 0; i < common; ++i)
      for (std::size_t r = 0; r < kRows; ++r) add(sums[r], row[r], i);
    for (std::size_t r = 0; r < kRows; ++r) {
      if constexpr (kRows > 1)
        for (std::int64_t i = common; i < row[r].count; ++i) add(sums[r], row[r], i);
      store(sums[r], row[r].out);
    }
  }

  HWY_INLINE void add_all(OffsetRows<In, Word> rows, std::int64_t count) const {
    constexpr std::size_t kRows = offset_rows_at_once(kVectors);
    constexpr auto kStep = static_cast<std::int64_t>(kRows);
    for (; count >= kStep; count -= kStep) add_rows<kRows>(rows);
    if constexpr (kRows > 1)
      for (; count > 0; --count) add_rows<1>(rows);
  }
};

// The addresses of a row's terms in a batch of one.
template <class In, class Word>
struct OffsetAddress {
  const std::byte* in;
  const Word* words;

  HWY_INLINE const In* at(std::uint64_t offset) const {
    return reinterpret_cast<const In*>(in + offset);
  }
  HWY_INLINE const In* operator()(std::int64_t i) const { return at(words[i]); }
  // Reads four words of 16 bits with one load: loads are the limit (1.15 times the rate).
  HWY_INLINE std::array<const In*, 4> four(std::int64_t i) const {
    if constexpr (sizeof(Word) > 2) {
      return {(*this)(i), (*this)(i + 1), (*this)(i + 2), (*this)(i + 3)};
    } else {
      constexpr std::uint32_t kWord = 0xffff;
      std::uint32_t two[2];
      std::memcpy(two, words + i, sizeof two);
      return {at(two[0] & kWord), at(two[0] >> 16), at(two[1] & kWord), at(two[1] >> 16)};
    }
  }
};

template <class In, class Word>
HWY_INLINE void one_column(const OffsetSums<In, Word>& args) {
  OffsetRows<In, Word> rows(args, 0);
  const auto* in = reinterpret_cast<const std::byte*>(args.in);
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const OffsetRow<In, Word> row = rows.next();
    const float sum =
        one_column_lanes(row.values, row.count, OffsetAddress<In, Word>{in, row.words});
    *row.out = (args.replaces ? 0.0f : *row.out) + sum;
  }
}

template <class In, class Word>
HWY_INLINE void all_offset_sums(const OffsetSums<In, Word>& args) {
  if (args.z == 1) return one_column(args);
  with_lanes_for(args.z, [&](auto lanes) {
    constexpr std::size_t kLanes = lanes;
    constexpr std::size_t kMost = kLanes == kNativeLanes ? kMostOffsetVectors : 2;
    for_each_panel<kLanes, kMost>(args.z, [&](const Panel& panel, auto vectors) {
      const auto add_panel = [&](auto whole) {
        const OffsetPanel<In, Word, kLanes, vectors, whole> sums{
            reinterpret_cast<const std::byte*>(args.in + panel.first), args.spread, panel,
            args.replaces};
        sums.add_all(OffsetRows<In, Word>(args, panel.first), args.rows);
      };
      if (is_whole<kLanes>(panel, vectors)) return add_panel(std::true_type());
      add_panel(std::false_type());
    });
  });
}

void offset_float_16(const OffsetSums<float, std::uint16_t>& args) { all_offset_sums(args); }
void offset_float_32(const OffsetSums<float, std::uint32_t>& args) { all_offset_sums(args); }
void offset_half_16(const OffsetSums<Half, std::uint16_t>& args) { all_offset_sums(args); }
void offset_bfloat16_16(const OffsetSums<BFloat16, std::uint16_t>& args) { all_offset_sums(args); }
void offset_half_32(const OffsetSums<Half, std::uint32_t>& args) { all_offset_sums(args); }
void offset_bfloat16_32(const OffsetSums<BFloat16, std::uint32_t>& args) { all_offset_sums(args); }

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {

HWY_EXPORT(offset_float_16);
HWY_EXPORT(offset_float_32);
HWY_EXPORT(offset_half_16);
HWY_EXPORT(offset_bfloat16_16);
HWY_EXPORT(offset_half_32);
HWY_EXPORT(offset_bfloat16_32);

void offset_sums(const OffsetSums<float, std::uint16_t>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(offset_float_16)(sums);
}
void offset_sums(const OffsetSums<float, std::uint32_t>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(offset_float_32)(sums);
}
void offset_sums(const OffsetSums<Half, std::uint16_t>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(offset_half_16)(sums);
}
void offset_sums(const OffsetSums<BFloat16, std::uint16_t>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(offset_bfloat16_16)(sums);
}
void offset_sums(const OffsetSums<Half, std::uint32_t>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(offset_half_32)(sums);
}
void offset_sums(const OffsetSums<BFloat16, std::uint32_t>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(offset_bfloat16_32)(sums);
}

}  // namespace tessera::codelets::internal
#endif
