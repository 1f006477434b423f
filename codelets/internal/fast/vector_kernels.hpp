#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/half.hpp"

// The interface between the walk over the words (compiled once) and the vector code (compiled for
// every instruction set): lists of plain numbers. All functions select the best instruction set of
// the CPU at run time, give the same bits on each, never allocate, throw or print, and touch no
// column past z. In is float, Half or BFloat16. A product is fused with the sum it is added to.
namespace tessera::codelets::internal {

static_assert(std::endian::native == std::endian::little);

// RowCode describes how to read the words that name dense rows. Word i of a row is stored `step`
// bytes after word i - 1 and is part of four bytes, of which `mask` removes the others. (At least
// one word follows each, the end marker, so four bytes may be read; and the CPU is little-endian.)
// A word is the number of the row times a scale. To divide, the factors of two are shifted out, and
// the result is multiplied by the inverse of the odd rest modulo 2^32. That is exact for multiples;
// a division would take longer than the sums.
struct RowCode {
  std::uint32_t mask;
  std::int64_t step;
  int shift;
  std::uint32_t inverse;
  std::int64_t scale;

  std::uint32_t word_at(const std::byte* word) const {
    std::uint32_t bits;
    std::memcpy(&bits, word, sizeof bits);
    return bits & mask;
  }
  std::uint32_t row_of(const std::byte* word) const { return (word_at(word) >> shift) * inverse; }
};

// The non-zeros that share one dense row: values [value, value + count), each with a word that
// names the other dense row.
struct TermRow {
  std::int64_t row;
  std::int64_t count;
  std::int64_t value;
  const std::byte* words;
};

// Some rows, all different, and the dense rows they name; strides in elements.
//   gather_sums   out[row][z]       += sum over its terms, in order: value * in[named row][z];
//                 with one column in lanes, as one_column_sum() of arithmetic.hpp
//   named_sums    the same for a separate GradA bucket: before the word that names the row
//                 there is one that names the value, by its distance in bytes from `values` + value
//   scatter_sums  out[named row][z] += value * in[row][z], term after term
template <class In>
struct ElementSums {
  std::span<const TermRow> rows;
  RowCode code;
  const In* values;
  const In* in;
  std::int64_t in_stride;
  float* out;
  std::int64_t out_stride;
  std::int64_t z;
  bool replaces = false;  // gather_sums: rows of out count as zeros
};
void gather_sums(const ElementSums<float>& sums) noexcept;
void gather_sums(const ElementSums<Half>& sums) noexcept;
void gather_sums(const ElementSums<BFloat16>& sums) noexcept;
void named_sums(const ElementSums<float>& sums) noexcept;
void named_sums(const ElementSums<Half>& sums) noexcept;
void named_sums(const ElementSums<BFloat16>& sums) noexcept;
void scatter_sums(const ElementSums<float>& sums) noexcept;
void scatter_sums(const ElementSums<Half>& sums) noexcept;
void scatter_sums(const ElementSums<BFloat16>& sums) noexcept;

// The arguments of functions that do the same as gather_sums() for rows of a matrix that is given
// as lists: out[r][z] += value * in[column][z], or replaces it. listed_sums() is for one column
// without gaps, listed_row_sums() for several.
template <class In>
struct ListedSums {
  std::span<const std::int64_t> row_begin;  // [block rows + 1] positions in the lists
  const std::uint32_t* columns;             // of blocks
  const In* values;
  const In* in;
  float* out;
  std::int64_t out_stride;
  bool replaces = false;
  std::int64_t in_stride = 1, z = 1;
  BlockShape block = {};  // of listed_block_sums
};
void listed_row_sums(const ListedSums<float>& sums) noexcept;
void listed_row_sums(const ListedSums<Half>& sums) noexcept;
void listed_row_sums(const ListedSums<BFloat16>& sums) noexcept;
void listed_sums(const ListedSums<float>& sums) noexcept;
void listed_sums(const ListedSums<Half>& sums) noexcept;
void listed_sums(const ListedSums<BFloat16>& sums) noexcept;

// Does the same as listed_sums() for blocks of 4, 8, or a multiple of 16 columns. A result has the
// bits that listed_sums() gives for the elements of the blocks.
void listed_block_sums(const ListedSums<float>& sums) noexcept;
void listed_block_sums(const ListedSums<Half>& sums) noexcept;
void listed_block_sums(const ListedSums<BFloat16>& sums) noexcept;

// Does the same as scatter_sums() for one column and such lists: out[column] += value * in[r] for
// the places of every r, one after the other. `replaces` must be false.
void listed_scatter(const ListedSums<float>& sums) noexcept;
void listed_scatter(const ListedSums<Half>& sums) noexcept;
void listed_scatter(const ListedSums<BFloat16>& sums) noexcept;

// The arguments of offset_sums(), which does the same as gather_sums() for the rows of one element
// record in which each word, multiplied by `spread` / 2^kSpreadBits and rounded down, is the
// distance in bytes of the row it names from `in`. `spread` is 2^kSpreadBits for a dense slice
// [y][header.z] without gaps, and n times that for one of n such slices side by side; it is
// negative where the rows of `in` are in reverse order. Nothing is decoded, which is the purpose of
// the word format.
//   words   from the record's first OutputEntry on
//   values  the record's
//   next    bytes that will be read soon: while the rows are added they are fetched into the
//           second-level cache, some for each row
//   streams rows that are replaced may be written past the caches; they begin at cache lines
template <class Word>
inline constexpr int kSpreadBits = 8 * sizeof(Word);
template <class In, class Word>
struct OffsetSums {
  const Word* words;
  std::int64_t rows;
  const In* values;
  const In* in;
  std::int64_t spread;
  float* out;
  std::int64_t out_stride;
  std::int64_t z;
  bool replaces = false;  // rows of out count as zeros
  std::span<const std::byte> next;
  bool streams = false;
};
void offset_sums(const OffsetSums<float, std::uint16_t>& sums) noexcept;
void offset_sums(const OffsetSums<float, std::uint32_t>& sums) noexcept;
void offset_sums(const OffsetSums<Half, std::uint16_t>& sums) noexcept;
void offset_sums(const OffsetSums<BFloat16, std::uint16_t>& sums) noexcept;
void offset_sums(const OffsetSums<Half, std::uint32_t>& sums) noexcept;
void offset_sums(const OffsetSums<BFloat16, std::uint32_t>& sums) noexcept;

// The arguments of element_dots():
//   gradients[value] += sum over z, in sixteen lanes: q_grad[row][z] * s[named row][z]
// With `replaces`, = instead of +=.
template <class In>
struct ElementDots {
  std::span<const TermRow> rows;
  RowCode code;
  const In* q_grad;
  std::int64_t q_grad_stride;
  const In* s;
  std::int64_t s_stride;
  float* gradients;
  std::int64_t z;
  bool replaces = false;
};
void element_dots(const ElementDots<float>& dots) noexcept;
void element_dots(const ElementDots<Half>& dots) noexcept;
void element_dots(const ElementDots<BFloat16>& dots) noexcept;

// The largest block of 16-bit values that block_sums() and block_transposed_sums() accept, because
// they convert some blocks at a time.
inline constexpr std::int64_t kMostBlockValues = 4096;

// Blocks of rows x cols values that share their rows and follow one another in memory. Block b
// covers the dense rows from `row` and from `columns[b]` on.
//   block_sums             out[row + i][z]        += values[b][i][j] * in[columns[b] + j][z]
//   block_transposed_sums  out[columns[b] + j][z] += values[b][i][j] * in[row + i][z]
// Order of additions to one output: b after b, inside a block j after j (transposed: i after i).
// block_sums of BFloat16 adds in the order of paired_column(), each product as add_paired_product()
// of arithmetic.hpp does, and so does block_pair_sums() of numbers of BFloat16 that are kept as
// floats, under FlushedFloats.
template <class In>
struct BlockSums {
  std::int64_t row;
  std::span<const std::uint32_t> columns;
  const In* values;
  std::int64_t rows, cols;
  const In* in;
  std::int64_t in_stride;
  float* out;
  std::int64_t out_stride;
  std::int64_t z;
  bool replaces = false;  // block_sums: rows of out count as zeros

  // block_sums: as many more entries follow `columns` in memory. They belong to blocks that will be
  // added next, to other rows, and input rows may be fetched for them.
  std::int64_t next_columns = 0;
};
void block_sums(const BlockSums<float>& sums) noexcept;
void block_sums(const BlockSums<Half>& sums) noexcept;
void block_sums(const BlockSums<BFloat16>& sums) noexcept;
void block_pair_sums(const BlockSums<float>& sums) noexcept;
void block_transposed_sums(const BlockSums<float>& sums) noexcept;
void block_transposed_sums(const BlockSums<Half>& sums) noexcept;
void block_transposed_sums(const BlockSums<BFloat16>& sums) noexcept;

// The arguments of block_dots():
//   gradients[b][i][j] += sum over z, in sixteen lanes: q_grad[row + i][z] * s[columns[b] + j][z]
// With `replaces`, = instead of +=.
template <class In>
struct BlockDots {
  std::int64_t row;
  std::span<const std::uint32_t> columns;
  float* gradients;
  std::int64_t rows, cols;
  const In* q_grad;
  std::int64_t q_grad_stride;
  const In* s;
  std::int64_t s_stride;
  std::int64_t z;
  bool replaces = false;
};
void block_dots(const BlockDots<float>& dots) noexcept;
void block_dots(const BlockDots<Half>& dots) noexcept;
void block_dots(const BlockDots<BFloat16>& dots) noexcept;

}  // namespace tessera::codelets::internal
