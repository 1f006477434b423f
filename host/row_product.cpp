#include "tessera/host/internal/row_product.hpp"

#include <algorithm>
#include <array>

#include "tessera/base/int_math.hpp"
#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host::internal {

bool RowProduct::takes(BlockShape block) {
  return block.is_element() ||
         (block.rows <= kProductRows && codelets::sums_blocks_in_lanes(block));
}

bool RowProduct::takes_samples(const sparse::Csr<float>& matrix, MatrixView<const float> in,
                               MatrixView<const float> out) {
  constexpr std::int64_t kInputsOfValue = 4, kInputsOfRow = 16;
  return matrix.block.is_element() && in.row_stride == 1 && out.row_stride == 1 &&
         kInputsOfValue * matrix.blocks() + kInputsOfRow * matrix.rows <= matrix.cols;
}

void RowProduct::add_rows(Range block_rows, const float* in, std::int64_t column,
                          const ProductCall<float>& call) const {
  const MatrixView<float>& out = call.out;
  const Epilogue<float>& after = call.after;
  std::array<float, kProductRows> own_sums;
  const std::int64_t height = matrix_.block.rows;
  const Range rows{block_rows.begin * height, std::min(block_rows.end * height, out.rows)};
  const Range columns{column, column + 1};
  const bool is_whole = rows.end == block_rows.end * height;
  const bool in_place = out.row_stride == 1 && after.beta == 0 && is_whole;
  float* const sums = in_place ? &out(rows.begin, column) : own_sums.data();
  const CompressedRows<float, std::int32_t, std::int64_t> matrix{
      matrix_.rows, matrix_.cols, matrix_.block, matrix_.row_begin, matrix_.col, matrix_.values};
  column_sums(matrix, block_rows, in, sums);
  if (!after.empty()) after.apply(sums, 1, rows, columns);
  if (!in_place) copy_from_rows<float>(sums, 1, out.sub(rows, columns));
}

const float* RowProduct::first_column(const ProductCall<float>& call) const {
  if (call.in.cols > 1) return call.in.data;
  HostPanels<float>& panels = call.scratch.in;
  const std::int64_t inputs = round_up(call.in.rows, matrix_.block.cols);
  panels.set_rows(inputs);
  panels.begin(call.in, {1, 1, call.in.row_stride != 1});
  const PassClock::Part copies(call.scratch.clock, call.times.copy_seconds);
  panels.read({0, 1}, call.executor);
  return static_cast<const float*>(panels.panel(0, {0, inputs}).data);
}

bool RowProduct::product(const ProductCall<float>& call) const {
  constexpr std::int64_t kSamplesOfStep = 64, kNoRoom = 0;
  const std::int64_t samples = call.in.cols;
  call.scratch.begin(std::ssize(matrix_.values) * samples, call.executor.threads(), kNoRoom);
  const float* const operand = first_column(call);
  for (std::int64_t first = 0; first < samples; first += kSamplesOfStep) {
    if (!call.control.begin("panel of columns")) return false;
    run_columns({first, std::min(first + kSamplesOfStep, samples)}, operand, call);
  }
  call.scratch.clock.add_to(call.times, call.scratch.threads);
  return true;
}

void RowProduct::run_columns(Range columns, const float* first_column,
                             const ProductCall<float>& call) const {
  const std::int64_t height = kProductRows / matrix_.block.rows;
  const std::int64_t parts_of_column = ceil_div(matrix_.block_rows(), height);
  SharedParts parts(parts_of_column * columns.size());
  const std::int64_t sums = std::ssize(matrix_.values) * columns.size();
  share_units(call.executor, sums, [&](std::int64_t thread) {
    const PassClock::Part kernels(call.scratch.clock,
                                  call.scratch.threads[std::size_t(thread)].kernel_seconds);
    while (const auto part = parts.next()) {
      const std::int64_t column = columns.begin + part->begin / parts_of_column;
      const std::int64_t first = part->begin % parts_of_column * height;
      const Range rows{first, std::min(first + height, matrix_.block_rows())};
      add_rows(rows, first_column + column * call.in.col_stride, column, call);
    }
  });
}

}  // namespace tessera::host::internal
