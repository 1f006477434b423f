#pragma once

#include <cstdint>

namespace tessera::codelets {

// The two ways in which packed rows store the columns of their values.
enum class PackedPositions {
  Bits,  // one bit for each place of the matrix
  Bytes  // one byte for each value, and one for each row of a segment
};

inline constexpr std::int64_t kPackedChunk = 32;       // columns whose values are expanded at once
inline constexpr std::int64_t kPackedSegment = 256;    // columns that a byte tells apart
inline constexpr std::int64_t kMostPackedCount = 255;  // values in a row of a segment, for Bytes
inline constexpr std::int64_t kMostPackedColumns = 4;  // of the operand, in one call
inline constexpr std::int64_t kPackedPadding = 32;  // values and offsets read beyond the last ones

// The arguments of packed_sums(): rows of a matrix of 16-bit values whose positions are packed, so
// that a product with few columns, which takes the time of reading the matrix, has little to read.
// T is Half or BFloat16. Values are stored row after row by ascending column, as in compressed
// rows. Values and offsets are followed by kPackedPadding elements of any content.
template <class T>
struct PackedSums {
  PackedPositions positions = PackedPositions::Bits;
  std::int64_t rows = 0, cols = 0;
  const std::int64_t* row_begin = nullptr;  // [rows + 1] positions in `values`
  const T* values = nullptr;
  const std::uint32_t* masks = nullptr;   // Bits: [rows][chunks]: bit i is set if column
                                          // kPackedChunk * chunk + i is stored
  const std::uint8_t* counts = nullptr;   // Bytes: [rows][segments] values of a row in a segment
  const std::uint8_t* offsets = nullptr;  // Bytes: the column of each value in its segment
  const T* in = nullptr;       // [z][in_stride]: the operand transposed, 0 from `cols` on
  std::int64_t in_stride = 0;  // elements, whole segments
  float* out = nullptr;        // [rows][out_stride]
  std::int64_t out_stride = 0;
  std::int64_t z = 1;  // columns of the operand, 1 .. kMostPackedColumns
};

// Sets out[r][j] = sum over the values of row r: value * in[j][its column]. All elements of `in`
// must be finite, because places that are not stored are multiplied as zeros. A value is added,
// with one rounding, to one of 32 sums: with Bits to that of its column modulo 32, with Bytes to
// that of its number in the row of its segment modulo 32. For BFloat16 sum 2 i + 1 is then added to
// sum 2 i, for Half sum i + 16 to sum i; of the sixteen sums that remain the upper half is added to
// the lower half until one is left. So the bits are the same on every instruction set. Never
// allocates, throws or prints; thread-safe.
template <class T>
void packed_sums(const PackedSums<T>& sums) noexcept;

// The reference kernel of packed_sums(): it defines the bits. Values that are not stored take no
// part, so `in` may have elements that are not finite.
template <class T>
void packed_sums_plainly(const PackedSums<T>& sums) noexcept;

}  // namespace tessera::codelets
