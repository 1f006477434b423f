// Element Fwd for words that are byte offsets into the operand (offset_sums) and for lists of
// columns (listed_row_sums), for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/offset_sums.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "tessera/base/int_math.hpp"
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

  // Rows follow one another in memory. Few columns use values and words faster than the hardware
  // fetches two streams by itself (z 8, Sapphire Rapids: 0.88 of the time).
  HWY_INLINE void ask_ahead(std::int64_t i) const {
    constexpr std::int64_t kAhead = 512;  // entries
    prefetch_beyond(values, (i + kAhead) * std::int64_t{sizeof(In)});
    prefetch_beyond(words, (i + kAhead) * std::int64_t{sizeof(Word)});
  }
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

  // The sums of the row that next() will return.
  HWY_INLINE const float* next_sums() const {
    return out_ + static_cast<std::int64_t>(words_[0]) * out_stride_;
  }

 private:
  const Word* words_;
  const In* values_;
  float* out_;
  std::int64_t out_stride_;
};

// Iterates over the rows of a matrix that is given as lists.
template <class In>
class ListedRows {
 public:
  HWY_INLINE ListedRows(const ListedSums<In>& args, std::int64_t first_column)
      : begin_(args.row_begin.data()),
        columns_(args.columns),
        values_(args.values),
        out_(args.out + first_column),
        out_stride_(args.out_stride) {}

  HWY_INLINE OffsetRow<In, std::uint32_t> next() {
    const std::int64_t first = *begin_++;
    float* const out = out_;
    out_ += out_stride_;
    return {columns_ + first, values_ + first, *begin_ - first, out};
  }
  HWY_INLINE const float* next_sums() const { return out_; }

 private:
  const std::int64_t* begin_;
  const std::uint32_t* columns_;
  const In* values_;
  float* out_;
  std::int64_t out_stride_;
};

// Sums that are a page or more apart are fetched ahead, because the hardware does so within a page
// only. AMD Zen 3, density 1/64, z 4096: 4096 x 1024 0.91 of the time, 1024 x 4096 0.85.
HWY_INLINE bool are_apart(std::int64_t out_stride) {
  constexpr std::int64_t kPage = 4096 / sizeof(float);
  return out_stride >= kPage;
}

// Fetches memory into the second-level cache, an equal part of it for each of some rows. Bursts of
// requests would wait for each other and for those of the rows themselves.
class FetchAhead {
 public:
  FetchAhead(std::span<const std::byte> bytes, std::int64_t rows)
      : at_(reinterpret_cast<std::uintptr_t>(bytes.data())), end_(at_ + bytes.size()) {
    const auto lines = static_cast<std::int64_t>(bytes.size() / kLine) + 1;
    per_row_ = static_cast<std::uintptr_t>(ceil_div(lines, std::max<std::int64_t>(rows, 1)));
  }

  HWY_INLINE void step(std::size_t rows) {
    for (std::uintptr_t n = rows * per_row_; n > 0 && at_ < end_; --n, at_ += kLine)
      __builtin_prefetch(reinterpret_cast<const void*>(at_), 0, 2);
  }

 private:
  static constexpr std::uintptr_t kLine = 64;  // bytes
  std::uintptr_t at_, end_, per_row_;
};

// The distance in bytes from the operand for which a word stands: the word itself, a part of its
// product with `spread` (OffsetSums), or rows.
struct DirectDistance {
  static constexpr bool kIsWord = true;
  HWY_INLINE std::int64_t operator()(std::uint64_t word) const {
    return static_cast<std::int64_t>(word);
  }
};
template <class Word>
struct SpreadDistance {
  static constexpr bool kIsWord = false;
  std::int64_t spread;
  HWY_INLINE std::int64_t operator()(std::uint64_t word) const {
    return static_cast<std::int64_t>(word) * spread >> kSpreadBits<Word>;
  }
};
struct RowDistance {
  static constexpr bool kIsWord = false;
  std::int64_t row_bytes;
  HWY_INLINE std::int64_t operator()(std::uint64_t row) const {
    return static_cast<std::int64_t>(row) * row_bytes;
  }
};

// With kWhole the vectors of the panel do not overlap, as in most products of layers: all distances
// of columns are constants.
template <class In, class Word, std::size_t kLanes, std::size_t kVectors, bool kWhole,
          class Distance>
struct OffsetPanel {
  using Sums = FloatVector<kLanes>[kVectors];
  static constexpr bool kFourWords = Distance::kIsWord && sizeof(Word) == 2;
  const std::byte* in;  // first column of the panel
  const Distance distance;
  const Panel panel;
  const bool replaces, streams;

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
    if constexpr (kWhole && kLanes == kNativeLanes)
      if (streams) {
        for (std::size_t v = 0; v < kVectors; ++v)
          hn::Stream(sums[v], Floats<kLanes>(), to + column(v));
        return;
      }
    for (std::size_t v = 0; v < kVectors; ++v)
      hn::StoreU(sums[v], Floats<kLanes>(), to + column(v));
  }
  HWY_INLINE void add(Sums& sums, const In* value, std::uint64_t word) const {
    const std::byte* address = in + distance(word);
    if constexpr (kVectors > 1) address = in_register(address);
    const In* from = reinterpret_cast<const In*>(address);
    const auto factor = broadcast<kLanes>(value);
    for (std::size_t v = 0; v < kVectors; ++v)
      sums[v] = add_product_lanes(sums[v], factor, load_lanes<kLanes>(from + column(v)));
  }
  // Reads four words of 16 bits with one load: loads are the limit (1.03 to 1.15 times the rate).
  HWY_INLINE void add_four(Sums& sums, const OffsetRow<In, Word>& row, std::int64_t i) const {
    std::uint64_t words;
    std::memcpy(&words, row.words + i, sizeof words);
    for (int k = 0; k < 4; ++k) add(sums, row.values + i + k, words >> (16 * k) & 0xffff);
  }

  // Adds kRows rows side by side while each has terms, then one after the other. The rows differ.
  template <std::size_t kRows, class Rows>
  HWY_INLINE void add_rows(Rows& rows, bool fetches_next = false) const {
    Sums sums[kRows];
    OffsetRow<In, Word> row[kRows];
    std::int64_t common = 0;
    for_constants<kRows>([&](auto r) HWY_ATTR {
      row[r] = rows.next();
      begin(sums[r], row[r].out);
      common = r == 0 ? row[r].count : std::min(common, row[r].count);
    });
    if (fetches_next) fetch(rows.next_sums());
    std::int64_t i = 0;
    if constexpr (kFourWords)
      for (; i + 4 <= common; i += 4) {
        if constexpr (kRows > 1) row[0].ask_ahead(i * std::int64_t{kRows});
        for_constants<kRows>([&](auto r) HWY_ATTR { add_four(sums[r], row[r], i); });
      }
    for (; i < common; ++i)
      for_constants<kRows>([&](auto r)
                               HWY_ATTR { add(sums[r], row[r].values + i, row[r].words[i]); });
    for_constants<kRows>([&](auto r) HWY_ATTR {
      if constexpr (kRows > 1)
        for (std::int64_t k = common; k < row[r].count; ++k)
          add(sums[r], row[r].values + k, row[r].words[k]);
      store(sums[r], row[r].out);
    });
  }

  HWY_INLINE void fetch(const float* sums) const {
    constexpr std::size_t kLine = 64 / sizeof(float);
    for (std::size_t c = 0; c < kVectors * kLanes; c += kLine) __builtin_prefetch(sums + c, 1);
  }

  template <class Rows>
  HWY_INLINE void add_all(Rows rows, std::int64_t count, bool fetches_sums,
                          FetchAhead ahead) const {
    constexpr std::size_t kRows = offset_rows_at_once(kVectors);
    constexpr auto kStep = static_cast<std::int64_t>(kRows);
    for (; count >= kStep; count -= kStep) {
      ahead.step(kRows);
      add_rows<kRows>(rows, fetches_sums && count > kStep);
    }
    if constexpr (kRows > 1)
      for (; count > 0; --count) add_rows<1>(rows);
  }
};

// The addresses of a row's terms in a batch of one.
template <class In, class Word, class Distance>
struct OffsetAddress {
  const std::byte* in;
  const OffsetRow<In, Word>& row;
  const Distance distance;

  HWY_INLINE const In* at(std::uint64_t word) const {
    return reinterpret_cast<const In*>(in + distance(word));
  }
  HWY_INLINE const In* operator()(std::int64_t i) const { return at(row.words[i]); }
  // Reads four words of 16 bits with one load: loads are the limit (1.15 times the rate).
  HWY_INLINE std::array<const In*, 4> four(std::int64_t i) const {
    if constexpr (sizeof(Word) > 2) {
      return {(*this)(i), (*this)(i + 1), (*this)(i + 2), (*this)(i + 3)};
    } else {
      constexpr std::uint32_t kWord = 0xffff;
      std::uint32_t two[2];
      std::memcpy(two, row.words + i, sizeof two);
      return {at(two[0] & kWord), at(two[0] >> 16), at(two[1] & kWord), at(two[1] >> 16)};
    }
  }
  HWY_INLINE void ask_ahead(const In*, std::int64_t i) const { row.ask_ahead(i); }
#if HWY_TARGET == HWY_AVX3
  HWY_INLINE FloatVector<16> gather(std::int64_t i) const
    requires(std::is_same_v<In, float> && sizeof(Word) == 2 && Distance::kIsWord)
  {
    return gather_offsets(in, row.words + i);
  }
#endif
};

template <class In, class Word, class Distance>
HWY_INLINE void one_column(const OffsetSums<In, Word>& args, Distance distance) {
  OffsetRows<In, Word> rows(args, 0);
  const auto* in = reinterpret_cast<const std::byte*>(args.in);
  for (std::int64_t r = 0; r < args.rows; ++r) {
    const OffsetRow<In, Word> row = rows.next();
    const float sum = one_column_lanes(row.values, row.count,
                                       OffsetAddress<In, Word, Distance>{in, row, distance});
    *row.out = (args.replaces ? 0.0f : *row.out) + sum;
  }
}

// Calls run(panel, vectors, whole) for the panels of z columns; `whole` is that of OffsetPanel.
template <class In, class Run>
HWY_INLINE void for_each_offset_panel(std::int64_t z, Run&& run) {
  with_lanes_for(z, [&](auto lanes) {
    constexpr std::size_t kLanes = lanes;
    constexpr std::size_t kMost = kLanes == kNativeLanes ? kMostOffsetVectors : 2;
    for_each_panel<kLanes, kMost>(z, [&](const Panel& panel, auto vectors) {
      if constexpr (std::is_same_v<In, float> && kLanes >= 4)
        if (is_whole<kLanes>(panel, vectors)) return run(panel, lanes, vectors, std::true_type());
      run(panel, lanes, vectors, std::false_type());
    });
  });
}

template <class In, class Word>
HWY_INLINE void all_offset_sums(const OffsetSums<In, Word>& args) {
  const bool is_direct = args.spread == std::int64_t{1} << kSpreadBits<Word>;
  const SpreadDistance<Word> spread{args.spread};
  if (args.z == 1) return is_direct ? one_column(args, DirectDistance()) : one_column(args, spread);
  for_each_offset_panel<In>(args.z, [&](const Panel& panel, auto lanes, auto vectors, auto whole) {
    const auto add_panel = [&](auto distance, auto is_whole) {
      const OffsetPanel<In, Word, lanes, vectors, is_whole, decltype(distance)> sums{
          reinterpret_cast<const std::byte*>(args.in + panel.first), distance, panel, args.replaces,
          args.streams};
      const bool is_first = panel.first == 0;
      sums.add_all(OffsetRows<In, Word>(args, panel.first), args.rows,
                   are_apart(args.out_stride) && !args.streams,
                   FetchAhead(is_first ? args.next : std::span<const std::byte>(), args.rows));
    };
    if constexpr (whole)
      if (is_direct) return add_panel(DirectDistance(), whole);
    add_panel(spread, std::false_type());
  });
  if (args.streams) hwy::FlushStream();  // before other threads are told of the results
}

// Rows of a list are of any lengths, and a term costs a multiplication more than one of words.
template <class In>
HWY_INLINE void all_listed_sums(const ListedSums<In>& args) {
  const RowDistance rows{args.in_stride * std::int64_t{sizeof(In)}};
  const auto count = static_cast<std::int64_t>(args.row_begin.size()) - 1;
  for_each_offset_panel<In>(args.z, [&](const Panel& panel, auto lanes, auto vectors, auto whole) {
    const OffsetPanel<In, std::uint32_t, lanes, vectors, whole, RowDistance> sums{
        reinterpret_cast<const std::byte*>(args.in + panel.first), rows, panel, args.replaces,
        /*streams=*/false};
    sums.add_all(ListedRows<In>(args, panel.first), count, are_apart(args.out_stride),
                 FetchAhead({}, count));
  });
}

void offset_float_16(const OffsetSums<float, std::uint16_t>& args) { all_offset_sums(args); }
void offset_float_32(const OffsetSums<float, std::uint32_t>& args) { all_offset_sums(args); }
void offset_half_16(const OffsetSums<Half, std::uint16_t>& args) { all_offset_sums(args); }
void offset_bfloat16_16(const OffsetSums<BFloat16, std::uint16_t>& args) { all_offset_sums(args); }
void offset_half_32(const OffsetSums<Half, std::uint32_t>& args) { all_offset_sums(args); }
void offset_bfloat16_32(const OffsetSums<BFloat16, std::uint32_t>& args) { all_offset_sums(args); }
void listed_rows_float(const ListedSums<float>& args) { all_listed_sums(args); }
void listed_rows_half(const ListedSums<Half>& args) { all_listed_sums(args); }
void listed_rows_bfloat16(const ListedSums<BFloat16>& args) { all_listed_sums(args); }

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
HWY_EXPORT(listed_rows_float);
HWY_EXPORT(listed_rows_half);
HWY_EXPORT(listed_rows_bfloat16);

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

void listed_row_sums(const ListedSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_rows_float)(sums);
}
void listed_row_sums(const ListedSums<Half>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_rows_half)(sums);
}
void listed_row_sums(const ListedSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_rows_bfloat16)(sums);
}

}  // namespace tessera::codelets::internal
#endif
