// Element Fwd (gather_sums, listed_sums), GradA (named_sums) and GradATransposed (scatter_sums,
// listed_scatter) for every instruction set.
#include "tessera/codelets/internal/fast/target_choice.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/codelets/internal/fast/element_sums.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"
#include "tessera/codelets/internal/fast/listed_rows.inl"
#include "tessera/codelets/internal/fast/one_column.inl"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// Eight vectors of sums leave registers for a factor and a product if there are 16. Four vectors
// are 8 to 16 % slower at z 256.
inline constexpr std::size_t kMostVectors = kInstrumented ? 2 : 8;
constexpr std::size_t most_vectors(std::size_t lanes) {
  return lanes == kNativeLanes ? kMostVectors : 2;
}
// An addition takes three to four cycles, so one or two vectors of sums would wait for themselves;
// rows are then taken side by side. With four vectors that gains nothing.
constexpr std::size_t rows_at_once(std::size_t vectors) {
  return vectors == 1 ? 4 : vectors <= 3 ? 2 : 1;
}

// With kNamed a word before each row's word names the value, as in a separate GradA bucket.
template <class In, std::size_t kLanes, std::size_t kVectors, bool kNamed>
struct RowSums {
  using Sums = FloatVector<kLanes>[kVectors];

  const ElementSums<In>& args;
  const Panel panel;

  template <class T>
  HWY_INLINE void load(Sums& sums, const T* from) const {
    for (std::size_t v = 0; v < kVectors; ++v)
      sums[v] = load_lanes<kLanes>(from + column_of<kLanes, kVectors>(panel, v));
  }
  HWY_INLINE void store(const Sums& sums, float* to) const {
    for (std::size_t v = 0; v < kVectors; ++v)
      hn::StoreU(sums[v], Floats<kLanes>(), to + column_of<kLanes, kVectors>(panel, v));
  }
  struct Term {
    const In* value;
    std::int64_t row;
  };
  HWY_INLINE Term term(const TermRow& row, std::int64_t i) const {
    const In* values = args.values + row.value;
    const std::byte* word = row.words + (kNamed ? 2 * i : i) * args.code.step;
    if constexpr (!kNamed) return {values + i, args.code.row_of(word)};
    const std::byte* value = reinterpret_cast<const std::byte*>(values) + args.code.word_at(word);
    return {reinterpret_cast<const In*>(value), args.code.row_of(word + args.code.step)};
  }
  HWY_INLINE void add(Sums& sums, const Term& t) const {
    const In* in = in_register(args.in + t.row * args.in_stride + panel.first);
    const auto factor = broadcast<kLanes>(t.value);
    for (std::size_t v = 0; v < kVectors; ++v)
      sums[v] = add_product_lanes(sums[v], factor,
                                  load_lanes<kLanes>(in + column_of<kLanes, kVectors>(panel, v)));
  }
  HWY_INLINE float* out(const TermRow& row) const {
    return args.out + row.row * args.out_stride + panel.first;
  }

  HWY_INLINE void begin(Sums& sums, const float* from) const {
    if (!args.replaces) return load(sums, from);
    for (auto& sum : sums) sum = hn::Zero(Floats<kLanes>());
  }

  HWY_INLINE void gather_row(const TermRow& row) const {
    Sums sums;
    begin(sums, out(row));
    for (std::int64_t i = 0; i < row.count; ++i) add(sums, term(row, i));
    store(sums, out(row));
  }

  // Adds kRows rows side by side while each has terms, then one after the other: their sums do not
  // wait for each other. The rows differ.
  template <std::size_t kRows>
  HWY_INLINE void gather_rows(const TermRow* rows) const {
    Sums sums[kRows];
    std::int64_t common = rows[0].count;
    for (std::size_t r = 0; r < kRows; ++r) {
      begin(sums[r], out(rows[r]));
      common = std::min(common, rows[r].count);
    }
    for (std::int64_t i = 0; i < common; ++i)
      for (std::size_t r = 0; r < kRows; ++r) add(sums[r], term(rows[r], i));
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::int64_t i = common; i < rows[r].count; ++i) add(sums[r], term(rows[r], i));
      store(sums[r], out(rows[r]));
    }
  }

  HWY_INLINE void gather_all() const {
    constexpr std::size_t kRows = rows_at_once(kVectors);
    std::size_t r = 0;
    if constexpr (kRows > 1)
      for (; r + kRows <= args.rows.size(); r += kRows) gather_rows<kRows>(&args.rows[r]);
    for (; r < args.rows.size(); ++r) gather_row(args.rows[r]);
  }

  // The input row stays in registers; each output row is read and written once for each term. The
  // arguments are copied, because the compiler has to read them again after each store of a vector.
  HWY_INLINE void scatter_all() const {
    static_assert(!kNamed);
    const RowCode code = args.code;
    float* const out = args.out + panel.first;
    const std::int64_t stride = args.out_stride;
    for (const TermRow& row : args.rows) {
      Sums in, sums;
      load(in, args.in + row.row * args.in_stride + panel.first);
      const In* value = args.values + row.value;
      const std::byte* word = row.words;
      for (const In* const end = value + row.count; value < end; ++value, word += code.step) {
        float* const to = out + code.row_of(word) * stride;
        const auto factor = broadcast<kLanes>(value);
        load(sums, to);
        for (std::size_t v = 0; v < kVectors; ++v)
          sums[v] = add_product_lanes(sums[v], factor, in[v]);
        store(sums, to);
      }
    }
  }
};

// Calls run(RowSums) for every panel of z.
template <bool kNamed, class In, class Run>
HWY_INLINE void for_each_row_sums(const ElementSums<In>& args, Run&& run) {
  with_lanes_for(args.z, [&](auto lanes) {
    constexpr std::size_t kLanes = lanes;
    for_each_panel<kLanes, most_vectors(kLanes)>(args.z, [&](const Panel& panel, auto vectors) {
      run(RowSums<In, kLanes, vectors, kNamed>{args, panel});
    });
  });
}

template <class In>
HWY_INLINE void gather(const ElementSums<In>& args) {
  if (args.z != 1)
    return for_each_row_sums<false>(args, [](const auto& sums) { sums.gather_all(); });
  for (const TermRow& row : args.rows) {
    float& out = args.out[row.row * args.out_stride];
    const float sum = one_column_lanes(args.values + row.value, row.count, [&](std::int64_t i) {
      return args.in + args.code.row_of(row.words + i * args.code.step) * args.in_stride;
    });
    out = (args.replaces ? 0.0f : out) + sum;
  }
}
void gather_float(const ElementSums<float>& args) { gather(args); }
void gather_half(const ElementSums<Half>& args) { gather(args); }
void gather_bfloat16(const ElementSums<BFloat16>& args) { gather(args); }
void listed_float(const ListedSums<float>& args) { gather_listed(args); }
void listed_half(const ListedSums<Half>& args) { gather_listed(args); }
void listed_bfloat16(const ListedSums<BFloat16>& args) { gather_listed(args); }
void listed_scatter_float(const ListedSums<float>& args) { scatter_listed(args); }
void listed_scatter_half(const ListedSums<Half>& args) { scatter_listed(args); }
void listed_scatter_bfloat16(const ListedSums<BFloat16>& args) { scatter_listed(args); }
void named_float(const ElementSums<float>& args) {
  for_each_row_sums<true>(args, [](const auto& sums) { sums.gather_all(); });
}
void named_half(const ElementSums<Half>& args) {
  for_each_row_sums<true>(args, [](const auto& sums) { sums.gather_all(); });
}
void named_bfloat16(const ElementSums<BFloat16>& args) {
  for_each_row_sums<true>(args, [](const auto& sums) { sums.gather_all(); });
}
void scatter_float(const ElementSums<float>& args) {
  for_each_row_sums<false>(args, [](const auto& sums) { sums.scatter_all(); });
}
void scatter_half(const ElementSums<Half>& args) {
  for_each_row_sums<false>(args, [](const auto& sums) { sums.scatter_all(); });
}
void scatter_bfloat16(const ElementSums<BFloat16>& args) {
  for_each_row_sums<false>(args, [](const auto& sums) { sums.scatter_all(); });
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::codelets::internal {

HWY_EXPORT(gather_float);
HWY_EXPORT(gather_half);
HWY_EXPORT(gather_bfloat16);
HWY_EXPORT(listed_float);
HWY_EXPORT(listed_half);
HWY_EXPORT(listed_bfloat16);
HWY_EXPORT(listed_scatter_float);
HWY_EXPORT(listed_scatter_half);
HWY_EXPORT(listed_scatter_bfloat16);
HWY_EXPORT(named_float);
HWY_EXPORT(named_half);
HWY_EXPORT(named_bfloat16);
HWY_EXPORT(scatter_float);
HWY_EXPORT(scatter_half);
HWY_EXPORT(scatter_bfloat16);

void gather_sums(const ElementSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(gather_float)(sums);
}
void gather_sums(const ElementSums<Half>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(gather_half)(sums);
}
void gather_sums(const ElementSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(gather_bfloat16)(sums);
}
void listed_sums(const ListedSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_float)(sums);
}
void listed_sums(const ListedSums<Half>& sums) noexcept { HWY_DYNAMIC_DISPATCH(listed_half)(sums); }
void listed_sums(const ListedSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_bfloat16)(sums);
}
void listed_scatter(const ListedSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_scatter_float)(sums);
}
void listed_scatter(const ListedSums<Half>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_scatter_half)(sums);
}
void listed_scatter(const ListedSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(listed_scatter_bfloat16)(sums);
}
void named_sums(const ElementSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(named_float)(sums);
}
void named_sums(const ElementSums<Half>& sums) noexcept { HWY_DYNAMIC_DISPATCH(named_half)(sums); }
void named_sums(const ElementSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(named_bfloat16)(sums);
}
void scatter_sums(const ElementSums<float>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(scatter_float)(sums);
}
void scatter_sums(const ElementSums<Half>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(scatter_half)(sums);
}
void scatter_sums(const ElementSums<BFloat16>& sums) noexcept {
  HWY_DYNAMIC_DISPATCH(scatter_bfloat16)(sums);
}

}  // namespace tessera::codelets::internal
#endif
