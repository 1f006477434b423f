#include "tessera/host/gradient_panels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/host/internal/dense_library.hpp"
#include "tessera/host/internal/gradient.hpp"
#include "tessera/host/internal/panels.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host {
namespace {

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
  PanelSize size;
  std::span<const GradientOperands> batches;
  AlignedVector<float> panel = {};
  AlignedVector<float> q_copy = {};
  std::vector<AlignedVector<float>> s_copies = std::vector<AlignedVector<float>>(batches.size());
  std::vector<MatrixView<const float>> s_rows = {};  // of each batch, for s_cols
  Range s_cols = {0, -1};

  // Without a library: one block of the size of a panel, whose gradient is row-major.
  std::unique_ptr<Executor> alone = {};
  std::unique_ptr<internal::HostGradient<float>> own = {};

  void make_own();
  void read_columns(Range cols);
  void add(std::size_t batch, Range rows, Range cols);
};

void GradientPanel::State::make_own() {
  constexpr std::int64_t kPlannedColumns = 256;  // the widest panels of z
  alone = make_executor(ExecutorKind::Threads, 1);
  own = std::make_unique<internal::HostGradient<float>>(kPlannedColumns, read_host_cpu(), *alone);
  const std::vector<float> values(std::size_t(size.rows * size.cols));
  own->set_pattern({size.rows, size.cols, {size.rows, size.cols}, {0, 1}, {0}, values});
}

void GradientPanel::State::read_columns(Range cols) {
  if (cols.begin == s_cols.begin && cols.end == s_cols.end) return;
  s_rows.clear();
  for (std::size_t b = 0; b < batches.size(); ++b)
    s_rows.push_back(in_rows(batches[b].s.sub(cols, {0, batches[b].s.cols}), s_copies[b]));
  s_cols = cols;
}

void GradientPanel::State::add(std::size_t batch, Range rows, Range cols) {
  const std::int64_t z = batches[batch].s.cols;
  const MatrixView<const float> q_grad = batches[batch].q_grad.sub(rows, {0, z});
  if (own) {
    const verify::RunOptions options;
    internal::PassControl control(options);
    HostTimes times;
    const bool ran = own->gradient(q_grad, s_rows[batch], panel,
                                   batch == 0 ? Accumulate::No : Accumulate::Yes, control, times);
    TESSERA_ASSERT(ran);
    return;
  }
  if (z == 0) {
    if (batch == 0) std::fill(panel.begin(), panel.end(), 0.0f);
    return;
  }
  const MatrixView<const float> q = in_rows(q_grad, q_copy);
  internal::multiply({.m = rows.size(),
                      .n = cols.size(),
                      .k = z,
                      .a = q.data,
                      .lda = q.row_stride,
                      .b = s_rows[batch].data,
                      .ldb = s_rows[batch].row_stride,
                      .b_is_transposed = true,
                      .c = panel.data(),
                      .ldc = size.cols,
                      .adds = batch > 0});
}

GradientPanel::GradientPanel(PanelSize size, std::span<const GradientOperands> batches) {
  check_batches(batches);
  state_ = std::make_unique<State>(State{size, batches});
  if (internal::dense_library() == nullptr) state_->make_own();
  state_->panel.resize(std::size_t(size.rows * size.cols));
}

GradientPanel::~GradientPanel() = default;
GradientPanel::GradientPanel(GradientPanel&&) noexcept = default;
GradientPanel& GradientPanel::operator=(GradientPanel&&) noexcept = default;

MatrixView<const float> GradientPanel::compute(Range rows, Range cols) {
  State& s = *state_;
  s.read_columns(cols);
  for (std::size_t b = 0; b < s.batches.size(); ++b) s.add(b, rows, cols);
  return {s.panel.data(), rows.size(), cols.size(), s.size.cols, 1};
}

// A thread takes panels that are neighbours along the rows, so that those of S are copied rarely.
void for_each_gradient_panel(
    PanelSize size, std::span<const GradientOperands> batches, Executor& executor,
    const std::function<void(const PanelAt&, MatrixView<const float>)>& visit) {
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
