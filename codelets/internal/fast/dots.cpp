// Element and block GradW for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/dots.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/fast/dot_rows.inl"
#include "tessera/codelets/internal/fast/dot_sums.inl"
#include "tessera/codelets/internal/fast/lanes.inl"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"
#include "tessera/codelets/internal/listed_columns.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// With so few columns plain code is faster. It has the bits of the reference kernel: lane 2 is
// added to lane 0 first.
inline constexpr std::int64_t kFewColumns = 3;

template <class In>
HWY_INLINE float few_columns_dot(const In* a, const In* b, std::int64_t z) {
  using One = Floats<1>;
  const auto product = [&](std::int64_t i) HWY_ATTR {
    if (i >= z) return hn::Zero(One());
    return add_product_lanes(hn::Zero(One()), load_lanes<1>(a + i), load_lanes<1>(b + i));
  };
  return hn::GetLane(hn::Add(hn::Add(product(0), product(2)), product(1))) + 0.0f;
}

// A gradient of one column is a product. With kListed the words are the positions in s.
template <bool kListed, bool kReplaces, class In>
HWY_INLINE void one_column(const ElementDots<In>& args) {
  const RowCode code = args.code;
  const std::int64_t stride = args.s_stride;
  const auto number = [](const In* at) HWY_ATTR { return hn::GetLane(load_lanes<1>(at)); };
  for (const TermRow& row : args.rows) {
    const float factor = number(args.q_grad + row.row * args.q_grad_stride);
    float* HWY_RESTRICT const to = args.gradients + row.value;
    const std::byte* word = row.words;
    for (std::int64_t i = 0; i < row.count; ++i, word += code.step) {
      const std::int64_t at = kListed ? code.word_at(word) : code.row_of(word) * stride;
      const float product = factor * number(args.s + at) + 0.0f;
      to[i] = kReplaces ? product : to[i] + product;
    }
  }
}

template <class In>
HWY_INLINE void one_column(const ElementDots<In>& args) {
  const bool is_listed = args.code.shift == 0 && args.code.inverse == 1 && args.s_stride == 1;
  if (args.replaces)
    return is_listed ? one_column<true, true>(args) : one_column<false, true>(args);
  is_listed ? one_column<true, false>(args) : one_column<false, false>(args);
}

template <class In>
HWY_INLINE void few_columns(const ElementDots<In>& args) {
  if (args.z == 1) return one_column(args);
  for (const TermRow& row : args.rows) {
    const In* q_grad = args.q_grad + row.row * args.q_grad_stride;
    for (std::int64_t i = 0; i < row.count; ++i) {
      const std::uint32_t named = args.code.row_of(row.words + i * args.code.step);
      add_one_to(args.gradients[row.value + i],
                 few_columns_dot(q_grad, args.s + named * args.s_stride, args.z), args.replaces);
    }
  }
}

template <class In>
HWY_INLINE void few_columns(const BlockDots<In>& args) {
  float* gradient = args.gradients;
  for (const std::uint32_t column : args.columns)
    for (std::int64_t i = 0; i < args.rows; ++i)
      for (std::int64_t j = 0; j < args.cols; ++j)
        add_one_to(*gradient++,
                   few_columns_dot(args.q_grad + (args.row + i) * args.q_grad_stride,
                                   args.s + (column + j) * args.s_stride, args.z),
                   args.replaces);
}

// Pending holds dot products whose lanes are not added up yet, so that kLanes of them are finished
// together, wherever rows end. With kContiguous the gradients of all rows follow one another.
template <bool kContiguous>
class Pending {
 public:
  HWY_INLINE Pending(float* gradients, bool replaces)
      : gradients_(gradients), replaces_(replaces) {}

  // The next dot products belong to the gradients from this one on.
  HWY_INLINE void begin_row(float* first) { next_ = first; }
  HWY_INLINE Vector* end() { return sums_ + count_; }  // has space for kTileColumns
  HWY_INLINE void added(std::int64_t count) {
    if constexpr (!kContiguous)
      for (std::int64_t i = 0; i < count; ++i) to_[count_ + i] = next_++;
    count_ += count;
    if (count_ < kFull) return;
    write(add_lanes_of(sums_), kFull);
    count_ -= kFull;
    if (count_ == 0) return;
    // As many as there may be: g++ makes a call of a loop over those that there are. Those beyond
    // are written before they are read.
    HWY_UNROLL(8)
    for (std::int64_t i = 0; i + 1 < kTileColumns; ++i) {
      sums_[i] = sums_[kFull + i];
      if constexpr (!kContiguous) to_[i] = to_[kFull + i];
    }
  }
  HWY_INLINE void finish() {
    if (count_ == 0) return;
    Vector rest[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i)
      rest[i] = static_cast<std::int64_t>(i) < count_ ? sums_[i] : hn::Zero(Floats<kLanes>());
    write(add_lanes_of(rest), count_);
  }

 private:
  static constexpr auto kFull = static_cast<std::int64_t>(kLanes);

  HWY_INLINE void write(Vector sums, std::int64_t count) {
    if constexpr (kContiguous) {
      add_some_to(gradients_, sums, count, replaces_);
      gradients_ += count;
    } else {
      float scratch[kLanes];
      hn::StoreU(sums, Floats<kLanes>(), scratch);
      for (std::int64_t i = 0; i < count; ++i) add_one_to(*to_[i], scratch[i], replaces_);
    }
  }

  Vector sums_[kLanes + kTileColumns];
  float* to_[kLanes + kTileColumns];  // of each sum
  std::int64_t count_ = 0;
  float* gradients_;  // of the first sum, with kContiguous
  float* next_ = nullptr;
  bool replaces_;
};

// The terms of a row that are left.
struct LeftTerms {
  const std::byte* words;
  std::int64_t count;
};

// Computes the dot products of the next kColumns terms.
template <bool kOffsets, std::size_t kColumns, class Row, class In>
HWY_INLINE void take_terms(const ElementDots<In>& args, const Row& row, LeftTerms& left,
                           Vector* to) {
  constexpr auto kCount = static_cast<std::int64_t>(kColumns);
  row.template add<kOffsets, kColumns>(args, left.words, to);
  left.words += kCount * args.code.step;
  left.count -= kCount;
}

// Takes kColumns terms at a time while there are so many.
template <bool kOffsets, std::size_t kColumns, class Row, bool kContiguous, class In>
HWY_INLINE void take_pending(const ElementDots<In>& args, const Row& row, LeftTerms& left,
                             Pending<kContiguous>& pending) {
  constexpr auto kCount = static_cast<std::int64_t>(kColumns);
  while (left.count >= kCount) {
    take_terms<kOffsets, kColumns>(args, row, left, pending.end());
    pending.added(kCount);
  }
}

// Takes the last terms, fewer than four, side by side: one alone waits for each of its sums. AMD
// Zen 3, 1024 x 784, density 0.02, z 128: 0.96 of the time; 1024 x 1024 at 0.01, z 16: 0.93.
template <bool kOffsets, class Row, bool kContiguous, class In>
HWY_INLINE void take_last(const ElementDots<In>& args, const Row& row, LeftTerms& left,
                          Pending<kContiguous>& pending) {
  const std::int64_t count = left.count;
  if (count == 0) return;
  if (count == 3)
    take_terms<kOffsets, 3>(args, row, left, pending.end());
  else if (count == 2)
    take_terms<kOffsets, 2>(args, row, left, pending.end());
  else
    take_terms<kOffsets, 1>(args, row, left, pending.end());
  pending.added(count);
}

// Rows of q_grad that are a page or more apart are fetched ahead: the hardware prefetcher stops at
// the end of a page. AMD Zen 3, 4096 x 1024, density 1/64, z 4096: 0.87 of the time.
inline constexpr std::int64_t kPageBytes = 4096;
inline constexpr std::size_t kRowsAhead = 2;

template <class In>
HWY_INLINE void fetch_row(const ElementDots<In>& args, std::size_t row) {
  constexpr std::int64_t kLine = 64 / sizeof(In);  // elements of a cache line
  if (row >= args.rows.size()) return;
  const In* from = args.q_grad + args.rows[row].row * args.q_grad_stride;
  for (std::int64_t z = 0; z < args.z; z += kLine) hwy::Prefetch(from + z);
}

// Adds up whole groups of kLanes dot products where they are, if the gradients of a row do not
// follow those of the row before. The other products wait for those of the next rows.
template <class Row, bool kOffsets, bool kContiguous, class In>
HWY_INLINE void add_element_rows(const ElementDots<In>& args) {
  constexpr auto kGroup = static_cast<std::int64_t>(kLanes);
  const bool is_apart = args.q_grad_stride * static_cast<std::int64_t>(sizeof(In)) >= kPageBytes;
  std::size_t ahead = kRowsAhead;
  Pending<kContiguous> pending(args.gradients + args.rows.front().value, args.replaces);
  for (const TermRow& terms : args.rows) {
    if (is_apart) fetch_row(args, ahead++);
    const Row row(args, terms.row);
    float* gradients = args.gradients + terms.value;
    LeftTerms left{terms.words, terms.count};
    if constexpr (!kContiguous)
      for (; left.count >= kGroup; gradients += kGroup) {
        Vector sums[kLanes];
        for (std::size_t i = 0; i < kLanes; i += Row::kTogether)
          take_terms<kOffsets, Row::kTogether>(args, row, left, sums + i);
        add_some_to(gradients, add_lanes_of(sums), kGroup, args.replaces);
      }
    pending.begin_row(gradients);
    take_pending<kOffsets, Row::kTogether>(args, row, left, pending);
    if constexpr (Row::kTogether > kFour) take_pending<kOffsets, kFour>(args, row, left, pending);
    take_last<kOffsets>(args, row, left, pending);
  }
  pending.finish();
}

template <bool kOffsets, bool kContiguous, class In>
HWY_INLINE void all_element_dots_of(const ElementDots<In>& args) {
  constexpr std::size_t kMostHeld = 16, kHeldStep = 4, kMostShort = kParts == 1 ? 8 : 4;
  constexpr auto kStepColumns = static_cast<std::int64_t>(kHeldStep * kSumLanes);
  const auto steps = static_cast<std::size_t>(args.z / kStepColumns);
  if constexpr (kParts <= 2 && std::is_same_v<In, float> && !kInstrumented)
    if (args.z <= kMostShort * static_cast<std::int64_t>(kSumLanes))
      return with_constant<kMostShort>(
          static_cast<std::size_t>(ceil_div(args.z, std::int64_t{kSumLanes})),
          [&](auto n) HWY_ATTR {
            const ElementDots<In> own = args;  // g++ keeps its members in registers
            add_element_rows<ShortRow<n>, kOffsets, kContiguous>(own);
          });
  if constexpr (kManyRegisters && kParts == 1 && !kInstrumented)
    if (args.z % kStepColumns == 0 && steps <= kMostHeld / kHeldStep)
      return with_constant<kMostHeld / kHeldStep>(steps, [&](auto n) HWY_ATTR {
        add_element_rows<HeldRow<In, n * kHeldStep>, kOffsets, kContiguous>(args);
      });
  add_element_rows<ManyColumns<In>, kOffsets, kContiguous>(args);
}

// Returns true if the gradients of each row follow those of the row before.
template <class In>
HWY_INLINE bool are_contiguous(const ElementDots<In>& args) {
  std::int64_t next = args.rows.front().value;
  for (const TermRow& row : args.rows) {
    if (row.value != next) return false;
    next += row.count;
  }
  return true;
}

template <class In>
HWY_INLINE void all_element_dots(const ElementDots<In>& args) {
  if (args.rows.empty()) return;
  if (args.z <= kFewColumns) return few_columns(args);
  const bool contiguous = are_contiguous(args);
  if (args.code.scale == args.s_stride * static_cast<std::int64_t>(sizeof(In)))
    return contiguous ? all_element_dots_of<true, true>(args)
                      : all_element_dots_of<true, false>(args);
  contiguous ? all_element_dots_of<false, true>(args) : all_element_dots_of<false, false>(args);
}

// Computes the gradients of kLanes / 4 rows of a block from row i on and four columns from column j
// on. Rows and columns beyond the block repeat its last row or column and are dropped. Meanwhile
// one of the rows of s that the next block needs is fetched: blocks may be anywhere, so the
// hardware prefetcher cannot predict it.
template <class In>
HWY_INLINE void block_part(const BlockDots<In>& args, const In* s, const In* next, float* gradients,
                           std::int64_t i, std::int64_t j) {
  constexpr std::size_t kRows = kLanes / kFour;
  const In *a[kRows], *b[kFour];
  for (std::size_t r = 0; r < kRows; ++r)
    a[r] = args.q_grad + (args.row + std::min(i + static_cast<std::int64_t>(r), args.rows - 1)) *
                             args.q_grad_stride;
  for (std::size_t c = 0; c < kFour; ++c)
    b[c] = s + std::min(j + static_cast<std::int64_t>(c), args.cols - 1) * args.s_stride;
  constexpr auto kStep = static_cast<std::int64_t>(kFour);
  const std::int64_t part =
      i / static_cast<std::int64_t>(kRows) * ceil_div(args.cols, kStep) + j / kStep;
  const In* ahead = next + std::min(part, args.cols - 1) * args.s_stride;
  Vector sums[kLanes];
  if constexpr (kParts == 2 && std::is_same_v<In, float>)
    dot_tile_by_halves<kRows, kFour>(a, b, args.z, sums, ahead);
  else
    for (std::size_t r = 0; r < kRows; r += kBlockRows)
      dot_tile<kBlockRows, kFour, true>(a + r, b, args.z, sums + r * kFour, ahead);
  float scratch[kLanes];
  hn::StoreU(add_lanes_of(sums), Floats<kLanes>(), scratch);
  const std::int64_t rows = std::min<std::int64_t>(args.rows - i, kRows);
  const std::int64_t cols = std::min<std::int64_t>(args.cols - j, kFour);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      add_one_to(gradients[(i + r) * args.cols + j + c],
                 scratch[r * static_cast<std::int64_t>(kFour) + c], args.replaces);
}

template <class In>
HWY_INLINE void all_block_dots(const BlockDots<In>& args) {
  if (args.z <= kFewColumns) return few_columns(args);
  float* gradients = args.gradients;
  for (std::size_t block = 0; block < args.columns.size(); ++block) {
    const In* s = args.s + args.columns[block] * args.s_stride;
    const std::size_t after = std::min(block + 1, args.columns.size() - 1);
    const In* next = args.s + args.columns[after] * args.s_stride;
    for (std::int64_t i = 0; i < args.rows; i += kLanes / kFour)
      for (std::int64_t j = 0; j < args.cols; j += kFour)
        block_part(args, s, next, gradients, i, j);
    gradients += args.rows * args.cols;
  }
}

#else  // with one lane, the sums of the reference kernels

template <class In>
void all_element_dots(const ElementDots<In>& args) {
  for (const TermRow& row : args.rows)
    for (std::int64_t i = 0; i < row.count; ++i) {
      const std::uint32_t named = args.code.row_of(row.words + i * args.code.step);
      add_one_to(args.gradients[row.value + i],
                 dot<float>(args.q_grad + row.row * args.q_grad_stride,
                            args.s + named * args.s_stride, args.z),
                 args.replaces);
    }
}

template <class In>
void all_block_dots(const BlockDots<In>& args) {
  float* gradient = args.gradients;
  for (const std::uint32_t column : args.columns)
    for (std::int64_t i = 0; i < args.rows; ++i)
      for (std::int64_t j = 0; j < args.cols; ++j)
        add_one_to(*gradient++,
                   dot<float>(args.q_grad + (args.row + i) * args.q_grad_stride,
                              args.s + (column + j) * args.s_stride, args.z),
                   args.replaces);
}

#endif

void element_float(const ElementDots<float>& args) { all_element_dots(args); }
void element_half(const ElementDots<Half>& args) { all_element_dots(args); }
void element_bfloat16(const ElementDots<BFloat16>& args) { all_element_dots(args); }
void block_float(const BlockDots<float>& args) { all_block_dots(args); }
void block_half(const BlockDots<Half>& args) { all_block_dots(args); }
void block_bfloat16(const BlockDots<BFloat16>& args) { all_block_dots(args); }

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {

HWY_EXPORT(element_float);
HWY_EXPORT(element_half);
HWY_EXPORT(element_bfloat16);
HWY_EXPORT(block_float);
HWY_EXPORT(block_half);
HWY_EXPORT(block_bfloat16);

void element_dots(const ElementDots<float>& dots) noexcept {
  HWY_DYNAMIC_DISPATCH(element_float)(dots);
}
void element_dots(const ElementDots<Half>& dots) noexcept {
  HWY_DYNAMIC_DISPATCH(element_half)(dots);
}
void element_dots(const ElementDots<BFloat16>& dots) noexcept {
  HWY_DYNAMIC_DISPATCH(element_bfloat16)(dots);
}
namespace {

// Blocks of one column: a row of s with neighbouring rows of q_grad, which change places. A tile
// would compute the column four times. Bits are the same.
template <class In>
void column_dots(const BlockDots<In>& dots) noexcept {
  constexpr std::size_t kAtOnce = 64;
  constexpr auto kRows = [] {
    std::array<std::uint32_t, kAtOnce> rows{};
    for (std::size_t i = 0; i < kAtOnce; ++i) rows[i] = static_cast<std::uint32_t>(i);
    return rows;
  }();
  std::array<TermRow, kAtOnce> columns;
  constexpr auto kStep = static_cast<std::int64_t>(kAtOnce);
  for (std::size_t begin = 0; begin < dots.columns.size(); begin += kAtOnce)
    for (std::int64_t row = 0; row < dots.rows; row += kStep) {
      const std::size_t count = std::min(kAtOnce, dots.columns.size() - begin);
      for (std::size_t b = 0; b < count; ++b)
        columns[b] = {dots.columns[begin + b], std::min(kStep, dots.rows - row),
                      static_cast<std::int64_t>(begin + b) * dots.rows + row,
                      reinterpret_cast<const std::byte*>(kRows.data())};
      element_dots({.rows = {columns.data(), count},
                    .code = kListedColumns<std::uint32_t>,
                    .q_grad = dots.s,
                    .q_grad_stride = dots.s_stride,
                    .s = dots.q_grad + (dots.row + row) * dots.q_grad_stride,
                    .s_stride = dots.q_grad_stride,
                    .gradients = dots.gradients,
                    .z = dots.z,
                    .replaces = dots.replaces});
    }
}

}  // namespace

void block_dots(const BlockDots<float>& dots) noexcept {
  if (dots.cols == 1) return column_dots(dots);
  HWY_DYNAMIC_DISPATCH(block_float)(dots);
}
void block_dots(const BlockDots<Half>& dots) noexcept {
  if (dots.cols == 1) return column_dots(dots);
  HWY_DYNAMIC_DISPATCH(block_half)(dots);
}
void block_dots(const BlockDots<BFloat16>& dots) noexcept {
  if (dots.cols == 1) return column_dots(dots);
  HWY_DYNAMIC_DISPATCH(block_bfloat16)(dots);
}

}  // namespace tessera::codelets::internal
#endif
