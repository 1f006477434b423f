#pragma once

#include <cstdint>

#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/bucket_walk.hpp"
#include "tessera/codelets/internal/operands.hpp"
#include "tessera/codelets/kernel.hpp"

// The reference kernels for elements: one non-zero after the other, all z of the tile at a time.
// They do not use the tables of workers: workers own disjoint outputs, so walking all rows in order
// adds to each output in the same order as every division of the work. Loops is the code for a row
// of z: RowLoops, or the vector code for half sums (fast/half_sums.hpp).
namespace tessera::codelets::internal {

template <class In, class Sum>
struct RowLoops {
  static void add(Sum* out, In r, const In* in, std::int64_t z) { add_scaled_row(out, r, in, z); }
  static Sum dot(const In* a, const In* b, std::int64_t z) { return internal::dot<Sum>(a, b, z); }
};

template <class In, class Sum, class Word, class Loops = RowLoops<In, Sum>>
struct ElementFwd {
  static constexpr Operation kOperation = Operation::Fwd;
  static constexpr Format kFormat = Format::Element;

  static void run(const KernelArgs& args) noexcept {
    if (args.replaces)
      for_each_entry<In>(words_of<Word>(args), args.sub_group,
                         [&](const OutputEntry& entry, const Word*, std::int64_t, std::int64_t) {
                           clear_rows<Sum>(args.out, entry.row, 1);
                         });
    if (args.out.z == 1) return one_column(args);
    const auto in = rows_of<In>(args.in);
    const auto out = rows_of<Sum>(args.out);
    const In* values = values_of<In>(args);
    for_each_non_zero<In>(words_of<Word>(args), args.sub_group,
                          [&](std::int64_t x, std::int64_t y, std::int64_t value) {
                            Loops::add(out.row(x), values[value], in.row(y), args.out.z);
                          });
  }

 private:
  static void one_column(const KernelArgs& args) {
    const auto in = rows_of<In>(args.in);
    const auto out = rows_of<Sum>(args.out);
    for_each_entry<In>(
        words_of<Word>(args), args.sub_group,
        [&](const OutputEntry& entry, const Word* words, std::int64_t value, std::int64_t scale) {
          const auto at = [&](std::int64_t i) { return *in.row(words[i] / scale); };
          Sum& sum = *out.row(entry.row);
          sum = add(sum, one_column_sum<Sum>(values_of<In>(args) + value, entry.columns, at));
        });
  }
};

template <class In, class Sum, class Word, class Loops = RowLoops<In, Sum>>
struct ElementGradATransposed {
  static constexpr Operation kOperation = Operation::GradATransposed;
  static constexpr Format kFormat = Format::Element;

  static void run(const KernelArgs& args) noexcept {
    const auto in = rows_of<In>(args.in);
    const auto out = rows_of<Sum>(args.out);
    const In* values = values_of<In>(args);
    for_each_non_zero<In>(words_of<Word>(args), args.sub_group,
                          [&](std::int64_t x, std::int64_t y, std::int64_t value) {
                            Loops::add(out.row(y), values[value], in.row(x), args.out.z);
                          });
  }
};

template <class In, class Sum, class Word, class Loops = RowLoops<In, Sum>>
struct ElementGradA {
  static constexpr Operation kOperation = Operation::GradA;
  static constexpr Format kFormat = Format::Element;

  static void run(const KernelArgs& args) noexcept {
    const auto in = rows_of<In>(args.in);
    const auto out = rows_of<Sum>(args.out);
    const In* values = values_of<In>(args);
    for_each_transposed_non_zero<In>(words_of<Word>(args), args.sub_group,
                                     [&](std::int64_t x, std::int64_t y, std::int64_t value) {
                                       Loops::add(out.row(y), values[value], in.row(x), args.out.z);
                                     });
  }
};

template <class In, class Sum, class Word, class Loops = RowLoops<In, Sum>>
struct ElementGradW {
  static constexpr Operation kOperation = Operation::GradW;
  static constexpr Format kFormat = Format::Element;

  static void run(const KernelArgs& args) noexcept {
    const auto q_grad = rows_of<In>(args.in);
    const auto s = rows_of<In>(args.in_s);
    Sum* gradients = static_cast<Sum*>(args.gradients);
    for_each_non_zero<In>(words_of<Word>(args), args.sub_group,
                          [&](std::int64_t x, std::int64_t y, std::int64_t value) {
                            add_gradient(args, gradients[value],
                                         Loops::dot(q_grad.row(x), s.row(y), args.in.z));
                          });
  }
};

}  // namespace tessera::codelets::internal
