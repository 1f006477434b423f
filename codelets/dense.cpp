#include "tessera/codelets/dense.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "tessera/codelets/internal/fast/vector_kernels.hpp"
#include "tessera/codelets/internal/operands.hpp"

namespace tessera::codelets {
namespace {

using internal::rows_of;

constexpr std::int64_t kSide = 16, kMostBlocks = 16;

// A strip of at most kSide rows of the left operand and some of its columns, in blocks of kSide
// columns. The vector kernels take the factors of a block from consecutive memory.
template <class In>
class Strip {
 public:
  Strip(const DenseArgs& args, std::int64_t row, std::int64_t rows)
      : args_(args), row_(row), rows_(rows) {}

  void add_all() {
    const std::int64_t inner = args_.left.z, whole = inner / kSide * kSide;
    for (std::int64_t k = 0; k < whole; k += kSide * kMostBlocks)
      add(k, std::min(kMostBlocks, (whole - k) / kSide), kSide);
    if (whole < inner) add(whole, 1, inner - whole);
  }

 private:
  void add(std::int64_t first, std::int64_t blocks, std::int64_t cols) {
    In* to = values_.data();
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t column = first + b * kSide;
      columns_[std::size_t(b)] = static_cast<std::uint32_t>(column);
      for (std::int64_t i = 0; i < rows_; ++i, to += cols)
        std::copy_n(rows_of<In>(args_.left).row(row_ + i) + column, cols, to);
    }
    internal::block_sums(internal::BlockSums<In>{.row = row_,
                                                 .columns = {columns_.data(), std::size_t(blocks)},
                                                 .values = values_.data(),
                                                 .rows = rows_,
                                                 .cols = cols,
                                                 .in = static_cast<const In*>(args_.right.data),
                                                 .in_stride = args_.right.row_stride,
                                                 .out = static_cast<float*>(args_.out.data),
                                                 .out_stride = args_.out.row_stride,
                                                 .z = args_.out.z,
                                                 .replaces = first == 0});
  }

  const DenseArgs& args_;
  std::int64_t row_, rows_;
  std::array<std::uint32_t, kMostBlocks> columns_;
  std::array<In, kSide * kSide * kMostBlocks> values_;
};

template <class In>
void multiply_to_floats(const DenseArgs& args) {
  for (std::int64_t row = 0; row < args.left.rows; row += kSide)
    Strip<In>(args, row, std::min(kSide, args.left.rows - row)).add_all();
}

void multiply_to_halves(const DenseArgs& args) {
  internal::clear_rows<Half>(args.out, 0, args.out.rows);
  for (std::int64_t i = 0; i < args.left.rows; ++i)
    for (std::int64_t k = 0; k < args.left.z; ++k)
      internal::add_scaled_row(rows_of<Half>(args.out).row(i), rows_of<Half>(args.left).row(i)[k],
                               rows_of<Half>(args.right).row(k), args.out.z);
}

}  // namespace

void multiply_dense(const DenseArgs& args, DataType in, DataType sum) noexcept {
  if (args.left.rows == 0 || args.left.z == 0 || args.out.z == 0) return;
  if (sum == DataType::Half) return multiply_to_halves(args);
  with_type(in, [&](auto zero) { multiply_to_floats<decltype(zero)>(args); });
}

}  // namespace tessera::codelets
