#include "tessera/host/gradient_panels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/place_dots.hpp"
#include "tessera/host/internal/dense_library.hpp"
#include "tessera/host/internal/panels.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host {
namespace {

void check_size(PanelSize size) {
  if (size.rows < 1 || size.cols < 1)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("dense gradient: a panel has {} x {} elements; both sizes must be at "
                            "least 1, as those of gradient_panel_size()",
                            size.rows, size.cols));
}

void check_batches(std::span<const GradientOperands> batches) {
  for (const GradientOperands& b : batches)
    if (b.q_grad.rows != batches[0].q_grad.rows || b.s.rows != batches[0].s.rows ||
        b.q_grad.cols != b.s.cols)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("dense gradient: q_grad is {} x {} and s is {} x {}; they must have "
                              "{} and {} rows, as in the first batch, and the same columns",
                              b.q_grad.rows, b.q_grad.cols, b.s.rows, b.s.cols,
                              batches[0].q_grad.rows, batches[0].s.rows));
}

// Operands of one batch in contiguous rows: those of the caller, or a copy.
MatrixView<const float> in_rows(MatrixView<const float> from, AlignedVector<float>& copy) {
  if (from.rows_are_contiguous() && from.row_stride >= from.cols) return from;
  internal::grow(copy, std::size_t(from.rows * from.cols));
  internal::copy_to_rows(from, copy.data(), from.cols);
  return {copy.data(), from.rows, from.cols, from.cols, 1};
}

}  // namespace

PanelSize gradient_panel_size(BlockShape block) {
  // The library packs its operands for every panel, which 256 rows make up for.
  constexpr PanelSize kSize{256, 1024};
  return {round_up(kSize.rows, block.rows), round_up(kSize.cols, block.cols)};
}

struct GradientPanel::State {
  std::span<const GradientOperands> batches;
  AlignedVector<float> panel = {};
  AlignedVector<float> q_copy = {};
  std::vector<AlignedVector<float>> s_copies = {};   // of each batch
  std::vector<MatrixView<const float>> s_rows = {};  // of each batch, for s_cols
  Range s_cols = {0, -1};

  void read_columns(Range cols);
  void add(std::size_t batch, Range rows);
  void add_by_library(std::size_t batch, MatrixView<const float> q);
  void add_by_own_kernel(std::size_t batch, MatrixView<const float> q);
};

void GradientPanel::State::read_columns(Range cols) {
  if (cols.begin == s_cols.begin && cols.end == s_cols.end) return;
  for (std::size_t b = 0; b < batches.size(); ++b)
    if (batches[b].s.cols > 0)  // else it may have no memory to point into
      s_rows[b] = in_rows(batches[b].s.sub(cols, {0, batches[b].s.cols}), s_copies[b]);
  s_cols = cols;
}

void GradientPanel::State::add_by_library(std::size_t batch, MatrixView<const float> q) {
  internal::multiply({.m = q.rows,
                      .n = s_rows[batch].rows,
                      .k = q.cols,
                      .a = q.data,
                      .lda = q.row_stride,
                      .b = s_rows[batch].data,
                      .ldb = s_rows[batch].row_stride,
                      .b_is_transposed = true,
                      .c = panel.data(),
                      .ldc = s_rows[batch].rows,
                      .adds = batch > 0});
}

// The panel is one block, whose gradient is row-major.
void GradientPanel::State::add_by_own_kernel(std::size_t batch, MatrixView<const float> q) {
  constexpr std::int64_t kColumns = 256;  // of the batch: rows of so many stay in a near cache
  constexpr std::int32_t kFirst = 0;
  const MatrixView<const float> s = s_rows[batch];
  for (std::int64_t z = 0; z < q.cols; z += kColumns)
    codelets::place_dots(codelets::PlaceDots<float>{.block = {q.rows, s.rows},
                                                    .columns = {&kFirst, 1},
                                                    .q_grad = q.data + z,
                                                    .q_grad_stride = q.row_stride,
                                                    .s = s.data + z,
                                                    .s_stride = s.row_stride,
                                                    .z = std::min(kColumns, q.cols - z),
                                                    .gradients = panel.data(),
                                                    .replaces = batch == 0 && z == 0});
}

void GradientPanel::State::add(std::size_t batch, Range rows) {
  const std::int64_t z = batches[batch].s.cols;
  if (z == 0 && batch == 0) std::fill(panel.begin(), panel.end(), 0.0f);
  if (z == 0) return;
  const MatrixView<const float> q = in_rows(batches[batch].q_grad.sub(rows, {0, z}), q_copy);
  if (internal::dense_library() != nullptr)
    add_by_library(batch, q);
  else
    add_by_own_kernel(batch, q);
}

GradientPanel::GradientPanel(PanelSize size, std::span<const GradientOperands> batches) {
  check_batches(batches);
  state_ = std::make_unique<State>();
  state_->batches = batches;
  state_->panel.resize(std::size_t(size.rows * size.cols));
  state_->s_copies.resize(batches.size());
  state_->s_rows.resize(batches.size());
}

GradientPanel::~GradientPanel() = default;
GradientPanel::GradientPanel(GradientPanel&&) noexcept = default;
GradientPanel& GradientPanel::operator=(GradientPanel&&) noexcept = default;

MatrixView<const float> GradientPanel::compute(Range rows, Range cols) {
  State& s = *state_;
  s.read_columns(cols);
  for (std::size_t b = 0; b < s.batches.size(); ++b) s.add(b, rows);
  return {s.panel.data(), rows.size(), cols.size(), cols.size(), 1};
}

// A thread takes panels that are neighbours along the rows, so that those of S are copied rarely.
void for_each_gradient_panel(
    PanelSize size, std::span<const GradientOperands> batches, Executor& executor,
    const std::function<void(const PanelAt&, MatrixView<const float>)>& visit) {
  check_size(size);
  check_batches(batches);
  if (batches.empty()) return;
  const std::int64_t rows = batches[0].q_grad.rows, cols = batches[0].s.rows;
  const std::int64_t down = ceil_div(rows, size.rows), count = down * ceil_div(cols, size.cols);
  std::vector<GradientPanel> panels;
  for (int t = 0; t < executor.threads(); ++t) panels.emplace_back(size, batches);
  std::atomic<std::int64_t> next = 0;
  executor.for_each(executor.threads(), [&](std::int64_t thread) {
    for (std::int64_t i = next++; i < count; i = next++) {
      const std::int64_t row = i % down * size.rows, col = i / down * size.cols;
      const PanelAt at{
          {row, std::min(row + size.rows, rows)}, {col, std::min(col + size.cols, cols)}, thread};
      visit(at, panels[std::size_t(thread)].compute(at.rows, at.cols));
    }
  });
}

}  // namespace tessera::host
