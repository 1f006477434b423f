#pragma once

#include <cstdint>
#include <type_traits>

#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/bucket_walk.hpp"
#include "tessera/codelets/internal/operands.hpp"
#include "tessera/codelets/kernel.hpp"

// The reference kernels for blocks of any size: block after block, inside a block row after row,
// all z of the tile at a time.
namespace tessera::codelets::internal {

// Calls visit(x, y, value) for every element of every block of the cell, in order of words, then
// row-major.
template <class Word, class Visit>
void for_each_block_element(const KernelArgs& args, Visit&& visit) {
  for_each_block(words_of<Word>(args), args.sub_group, args.block.area(),
                 [&](std::int64_t x, std::int64_t y, std::int64_t value) {
                   for (std::int64_t i = 0; i < args.block.rows; ++i)
                     for (std::int64_t j = 0; j < args.block.cols; ++j)
                       visit(x + i, y + j, value + i * args.block.cols + j);
                 });
}

template <class In, class Sum, class Word>
struct BlockFwd {
  static constexpr Operation kOperation = Operation::Fwd;
  static constexpr Format kFormat = Format::Block;

  static void run(const KernelArgs& args) noexcept {
    const auto in = rows_of<In>(args.in);
    const auto out = rows_of<Sum>(args.out);
    const In* values = values_of<In>(args);
    if (args.replaces)
      for_each_block(words_of<Word>(args), args.sub_group, args.block.area(),
                     [&](std::int64_t x, std::int64_t, std::int64_t) {
                       clear_rows<Sum>(args.out, x, args.block.rows);
                     });
    if constexpr (std::is_same_v<In, BFloat16>) return add_pairs(args);
    if constexpr (std::is_same_v<In, float>)
      if (args.pairs) return add_pairs(args);
    for_each_block_element<Word>(args, [&](std::int64_t x, std::int64_t y, std::int64_t value) {
      add_scaled_row(out.row(x), values[value], in.row(y), args.out.z);
    });
  }

 private:
  static void add_pairs(const KernelArgs& args) {
    const auto add_row = [&](std::int64_t x, std::int64_t y, const In* values) {
      for (std::int64_t i = 0; i < args.block.cols; ++i) {
        const std::int64_t j = paired_column(i, args.block.cols);
        const In* in = rows_of<In>(args.in).row(y + j);
        float* out = rows_of<float>(args.out).row(x);
        for (std::int64_t z = 0; z < args.out.z; ++z)
          out[z] = add_paired_product(out[z], values[j], in[z]);
      }
    };
    for_each_block(words_of<Word>(args), args.sub_group, args.block.area(),
                   [&](std::int64_t x, std::int64_t y, std::int64_t value) {
                     for (std::int64_t i = 0; i < args.block.rows; ++i)
                       add_row(x + i, y, values_of<In>(args) + value + i * args.block.cols);
                   });
  }
};

template <class In, class Sum, class Word>
struct BlockGradATransposed {
  static constexpr Operation kOperation = Operation::GradATransposed;
  static constexpr Format kFormat = Format::Block;

  static void run(const KernelArgs& args) noexcept {
    const auto in = rows_of<In>(args.in);
    const auto out = rows_of<Sum>(args.out);
    const In* values = values_of<In>(args);
    for_each_block_element<Word>(args, [&](std::int64_t x, std::int64_t y, std::int64_t value) {
      add_scaled_row(out.row(y), values[value], in.row(x), args.out.z);
    });
  }
};

template <class In, class Sum, class Word>
struct BlockGradW {
  static constexpr Operation kOperation = Operation::GradW;
  static constexpr Format kFormat = Format::Block;

  static void run(const KernelArgs& args) noexcept {
    const auto q_grad = rows_of<In>(args.in);
    const auto s = rows_of<In>(args.in_s);
    Sum* gradients = static_cast<Sum*>(args.gradients);
    for_each_block_element<Word>(args, [&](std::int64_t x, std::int64_t y, std::int64_t value) {
      add_gradient(args, gradients[value], dot<Sum>(q_grad.row(x), s.row(y), args.in.z));
    });
  }
};

}  // namespace tessera::codelets::internal
