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

void RowProduct::add_rows(Range block_rows, const float* in, MatrixView<float> out,
                          std::int64_t column, const Epilogue<float>& after) const {
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

const float* RowProduct::first_column(MatrixView<const float> in, HostTimes& times,
                                      ProductScratch<float>& scratch, Executor& executor) const {
  if (in.cols > 1) return in.data;
  const std::int64_t inputs = round_up(in.rows, matrix_.block.cols);
  scratch.in.set_rows(inputs);
  scratch.in.begin(in, {1, 1, in.row_stride != 1});
  const PassClock::Part copies(scratch.clock, times.copy_seconds);
  scratch.in.read({0, 1}, executor);
  return static_cast<const float*>(scratch.in.panel(0, {0, inputs}).data);
}

bool RowProduct::product(MatrixView<const float> in, MatrixView<float> out,
                         const Epilogue<float>& after, PassControl& control, HostTimes& times,
                         ProductScratch<float>& scratch, Executor& executor) const {
  constexpr std::int64_t kSamplesOfStep = 64;
  scratch.clock = PassClock(std::ssize(matrix_.values) * in.cols);
  scratch.threads.resize(std::size_t(executor.threads()));
  for (auto& thread : scratch.threads) thread.kernel_seconds = 0;
  const float* const operand = first_column(in, times, scratch, executor);
  for (std::int64_t first = 0; first < in.cols; first += kSamplesOfStep) {
    if (!control.begin("panel of columns")) return false;
    const Range columns{first, std::min(first + kSamplesOfStep, in.cols)};
    run_columns(columns, {operand, in.rows, in.cols, 1, in.col_stride}, out, after, scratch,
                executor);
  }
  scratch.clock.add_to(times, scratch.threads);
  return true;
}

void RowProduct::run_columns(Range columns, MatrixView<const float> in, MatrixView<float> out,
                             const Epilogue<float>& after, ProductScratch<float>& scratch,
                             Executor& executor) const {
  const std::int64_t height = kProductRows / matrix_.block.rows;
  const std::int64_t parts_of_column = ceil_div(matrix_.block_rows(), height);
  SharedParts parts(parts_of_column * columns.size());
  share_units(executor, std::ssize(matrix_.values) * columns.size(), [&](std::int64_t thread) {
    const PassClock::Part kernels(scratch.clock,
                                  scratch.threads[std::size_t(thread)].kernel_seconds);
    while (const auto part = parts.next()) {
      const std::int64_t column = columns.begin + part->begin / parts_of_column;
      const std::int64_t first = part->begin % parts_of_column * height;
      const Range rows{first, std::min(first + height, matrix_.block_rows())};
      add_rows(rows, in.data + column * in.col_stride, out, column, after);
    }
  });
}

}  // namespace tessera::host::internal
