#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "tessera/codelets/internal/block_kernels.hpp"
#include "tessera/codelets/internal/bucket_walk.hpp"
#include "tessera/codelets/internal/fast/flushed_floats.hpp"
#include "tessera/codelets/internal/fast/half_sums.hpp"
#include "tessera/codelets/internal/fast/term_rows.hpp"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"
#include "tessera/codelets/internal/operands.hpp"
#include "tessera/codelets/kernel.hpp"

// The vector kernels, for float sums, and the code for half sums of elements. They walk the words
// as the reference kernels do, and pass lists to the vector code. They give the same bits as the
// reference kernels, except that a NaN may be another NaN.
namespace tessera::codelets::internal {

// The code of element kernels for a row of half sums.
struct HalfRows {
  static void add(Half* out, Half r, const Half* in, std::int64_t z) {
    add_scaled_half_row(out, r, in, z);
  }
  static Half dot(const Half* a, const Half* b, std::int64_t z) { return half_dot(a, b, z); }
};

template <class In>
ElementSums<In> element_sums_of(const KernelArgs& args, std::span<const TermRow> rows,
                                const RowCode& code) {
  return {.rows = rows,
          .code = code,
          .values = values_of<In>(args),
          .in = static_cast<const In*>(args.in.data),
          .in_stride = args.in.row_stride,
          .out = static_cast<float*>(args.out.data),
          .out_stride = args.out.row_stride,
          .z = args.out.z,
          .replaces = args.replaces};
}

template <Bucket kBucket, class In, class Word, class Add>
void fast_element_sums(const KernelArgs& args, Add&& add) {
  if (args.out.z == 0) return;
  for_each_term_rows<kBucket, In>(words_of<Word>(args), args.sub_group,
                                  [&](std::span<const TermRow> rows, const RowCode& code) {
                                    add(element_sums_of<In>(args, rows, code));
                                  });
}

// Returns the factor by which a word of this record becomes an offset into the operand
// (OffsetSums). A word is a row times z, so the product is exact although the factor is rounded up:
// the error is below a byte. 0 if products would not fit in 64 bits.
template <class Word>
std::int64_t spread_of(const KernelArgs& args, const ElementHeader& header) {
  constexpr std::int64_t kOne = std::int64_t{1} << kSpreadBits<Word>;
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  const std::int64_t z = std::max<std::int64_t>(header.z, 1), stride = args.in.row_stride;
  if (z == stride) return kOne;
  const bool fits = std::abs(stride) * std::max<std::int64_t>(args.in.rows, 1) < kMostBytes / 4;
  if (sizeof(Word) > sizeof(std::uint16_t) && !fits) return 0;
  return stride * kOne / z + (stride * kOne % z > 0 ? 1 : 0);
}

// Returns the bytes of the operand that follows, or nothing where its rows lie far apart.
template <class In>
std::span<const std::byte> next_bytes(const Operand& next) {
  if (next.rows == 0 || next.row_stride >= 2 * next.z) return {};
  return {static_cast<const std::byte*>(next.data),
          std::size_t(((next.rows - 1) * next.row_stride + next.z) * std::int64_t{sizeof(In)})};
}

// Words give offsets into an operand whose rows are any distance apart; only where the numbers
// would not fit they are decoded first.
template <class In, class Word>
void fast_element_fwd(const KernelArgs& args) noexcept {
  if (args.out.z == 0) return;
  const auto add_record = [&](const ElementHeader& header, const Word* record, std::int64_t value) {
    if (header.sub_group != args.sub_group) return;
    const std::int64_t spread = spread_of<Word>(args, header);
    if (spread == 0)
      return for_each_term_rows_of<Bucket::Forward, In>(
          header, record, value, [&](std::span<const TermRow> rows, const RowCode& code) {
            gather_sums(element_sums_of<In>(args, rows, code));
          });
    offset_sums(OffsetSums<In, Word>{.words = record + header.first_output,
                                     .rows = header.last_row + 1,
                                     .values = values_of<In>(args) + value,
                                     .in = static_cast<const In*>(args.in.data),
                                     .spread = spread,
                                     .out = static_cast<float*>(args.out.data),
                                     .out_stride = args.out.row_stride,
                                     .z = args.out.z,
                                     .replaces = args.replaces,
                                     .next = next_bytes<In>(args.in_s),
                                     .streams = args.streams && args.replaces});
  };
  for_each_record<ElementHeader>(words_of<Word>(args), add_record);
}

template <class In, class Word>
void fast_element_grad_a_transposed(const KernelArgs& args) noexcept {
  fast_element_sums<Bucket::Forward, In, Word>(
      args, [](const ElementSums<In>& sums) { scatter_sums(sums); });
}

template <class In, class Word>
void fast_element_grad_a(const KernelArgs& args) noexcept {
  fast_element_sums<Bucket::GradA, In, Word>(args,
                                             [](const ElementSums<In>& sums) { named_sums(sums); });
}

template <class In, class Word>
void fast_element_grad_w(const KernelArgs& args) noexcept {
  for_each_term_rows<Bucket::Forward, In>(
      words_of<Word>(args), args.sub_group,
      [&](std::span<const TermRow> rows, const RowCode& code) {
        element_dots(ElementDots<In>{.rows = rows,
                                     .code = code,
                                     .q_grad = static_cast<const In*>(args.in.data),
                                     .q_grad_stride = args.in.row_stride,
                                     .s = static_cast<const In*>(args.in_s.data),
                                     .s_stride = args.in_s.row_stride,
                                     .gradients = static_cast<float*>(args.gradients),
                                     .z = args.in.z,
                                     .replaces = args.replaces});
      });
}

// Neighbouring blocks of one block row of the cell: their columns, and the index of their first
// value.
struct ColumnRun {
  std::int64_t row;
  std::span<const std::uint32_t> columns;
  std::int64_t next_columns;  // of the next block row: entries that follow `columns` in memory
  std::int64_t value;
  bool is_first;  // true: begins its block row
};

// Returns the number of blocks of the block row whose entry begins at `entry`.
template <class Word>
std::int64_t blocks_of_row(const Word* entry) {
  return load<OutputEntry>(entry).columns + 1;
}

// Calls use(ColumnRun) for all blocks of the cell.
template <class Word, class Use>
void for_each_column_run(const KernelArgs& args, Use&& use) {
  constexpr std::int64_t kMostColumns = 256, kMostNext = 8;
  const std::int64_t area = args.block.area();
  std::array<std::uint32_t, kMostColumns + kMostNext> columns;
  for_each_record<BlockHeader>(
      words_of<Word>(args), [&](const BlockHeader& header, const Word* record, std::int64_t value) {
        if (header.sub_group != args.sub_group) return;
        const std::int64_t table = header.grad_w_workers * kWords<GradWWorkerEntry>;
        std::int64_t rows_left = header.last_row + 1;
        for_each_row(
            record + kWords<BlockHeader> + table, header.last_row + 1,
            [&](const OutputEntry& entry, const Word* words) {
              const std::int64_t blocks = entry.columns + 1;
              const Word* next_row = words + blocks;
              const std::int64_t next = --rows_left == 0 ? 0 : blocks_of_row(next_row);
              for (std::int64_t done = 0; done < blocks; done += kMostColumns) {
                const std::int64_t count = std::min(kMostColumns, blocks - done);
                std::copy_n(words + done, count, columns.begin());
                const std::int64_t ahead = done + count == blocks ? std::min(next, kMostNext) : 0;
                std::copy_n(next_row + kWords<OutputEntry>, ahead, columns.begin() + count);
                const std::span<const std::uint32_t> own(columns.data(), std::size_t(count));
                use(ColumnRun{entry.row, own, ahead, value, done == 0});
                value += count * area;
              }
              return blocks;
            });
      });
}

template <class In, class Word, class Add>
void fast_block_sums(const KernelArgs& args, Add&& add) {
  if (args.out.z == 0) return;
  for_each_column_run<Word>(args, [&](const ColumnRun& run) {
    add(BlockSums<In>{.row = run.row,
                      .columns = run.columns,
                      .values = values_of<In>(args) + run.value,
                      .rows = args.block.rows,
                      .cols = args.block.cols,
                      .in = static_cast<const In*>(args.in.data),
                      .in_stride = args.in.row_stride,
                      .out = static_cast<float*>(args.out.data),
                      .out_stride = args.out.row_stride,
                      .z = args.out.z,
                      .replaces = args.replaces && run.is_first,
                      .next_columns = run.next_columns});
  });
}

template <class In>
bool needs_more_room(const KernelArgs& args) {
  return !std::is_same_v<In, float> && args.block.area() > kMostBlockValues;
}

template <class In, class Word>
void fast_block_fwd(const KernelArgs& args) noexcept {
  if (needs_more_room<In>(args)) return BlockFwd<In, float, Word>::run(args);
  if constexpr (std::is_same_v<In, float>)
    if (args.pairs) {
      const FlushedFloats mode;  // once, as few columns take little longer than a change of mode
      return fast_block_sums<In, Word>(args, block_pair_sums);
    }
  fast_block_sums<In, Word>(args, [](const BlockSums<In>& sums) { block_sums(sums); });
}

template <class In, class Word>
void fast_block_grad_a_transposed(const KernelArgs& args) noexcept {
  if (needs_more_room<In>(args)) return BlockGradATransposed<In, float, Word>::run(args);
  fast_block_sums<In, Word>(args, [](const BlockSums<In>& sums) { block_transposed_sums(sums); });
}

template <class In, class Word>
void fast_block_grad_w(const KernelArgs& args) noexcept {
  for_each_column_run<Word>(args, [&](const ColumnRun& run) {
    block_dots(BlockDots<In>{.row = run.row,
                             .columns = run.columns,
                             .gradients = static_cast<float*>(args.gradients) + run.value,
                             .rows = args.block.rows,
                             .cols = args.block.cols,
                             .q_grad = static_cast<const In*>(args.in.data),
                             .q_grad_stride = args.in.row_stride,
                             .s = static_cast<const In*>(args.in_s.data),
                             .s_stride = args.in_s.row_stride,
                             .z = args.in.z,
                             .replaces = args.replaces});
  });
}

}  // namespace tessera::codelets::internal
