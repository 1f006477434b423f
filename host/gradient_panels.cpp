#include "tessera/host/gradient_panels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/place_sums.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/host/internal/dense_library.hpp"
#include "tessera/host/internal/panels.hpp"
#include "tessera/host/internal/share_work.hpp"
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

constexpr std::int64_t kSide = 16;  // side of the blocks that our own kernel is fastest with

// Rows of the transpose that are 4096 bytes apart would be in one set of a first-level cache.
std::int64_t stride_of(std::int64_t cols) { return round_up(cols, kSide) + kSide; }

// Writes rows as blocks of kSide x kSide, with zeros where there is nothing.
void cut_to_blocks(MatrixView<const float> rows, float* to) {
  std::fill_n(to, round_up(rows.cols, kSide) * kSide, 0.0f);
  for (std::int64_t r = 0; r < rows.rows; ++r)
    for (std::int64_t z = 0; z < rows.cols; z += kSide)
      for (std::int64_t i = z; i < std::min(z + kSide, rows.cols); ++i)
        to[z * kSide + r * kSide + i - z] = rows(r, i);
}

}  // namespace

// The library packs its operands for every panel, which 256 rows make up for. Our kernel needs the
// transpose of S, which takes as much memory as a panel of 128 rows for a batch of 128.
PanelSize gradient_panel_size(BlockShape block) {
  constexpr PanelSize kOfLibrary{256, 1024}, kOwn{128, 1024};
  const PanelSize size = internal::dense_library() != nullptr ? kOfLibrary : kOwn;
  return {round_up(size.rows, block.rows), round_up(size.cols, block.cols)};
}

struct GradientPanel::State {
  std::span<const GradientOperands> batches;
  bool own_kernel;
  AlignedVector<float> panel = {};
  AlignedVector<float> q_copy = {};
  std::vector<AlignedVector<float>> s_copies = {};      // of each batch
  std::vector<AlignedVector<float>> s_transposed = {};  // of each batch, for our own kernel
  AlignedVector<float> q_blocks = {};                   // of kSide rows
  std::vector<std::int32_t> inputs = {};                // of these blocks
  std::vector<MatrixView<const float>> s_rows = {};     // of each batch, for s_cols
  Range s_cols = {0, -1};

  void read_columns(Range cols);
  void add(std::size_t batch, Range rows);
  void transpose_s(std::size_t batch, MatrixView<const float> s);
  void add_by_library(std::size_t batch, MatrixView<const float> q);
  void add_by_own_kernel(std::size_t batch, MatrixView<const float> q);
};

void GradientPanel::State::read_columns(Range cols) {
  if (cols.begin == s_cols.begin && cols.end == s_cols.end) return;
  s_cols = cols;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (batches[b].s.cols == 0) continue;  // it may have no memory to point into
    const MatrixView<const float> s = batches[b].s.sub(cols, {0, batches[b].s.cols});
    if (own_kernel)
      transpose_s(b, s);
    else
      s_rows[b] = in_rows(s, s_copies[b]);
  }
}

// Rows beyond the batch are 0, so that whole blocks may be multiplied.
void GradientPanel::State::transpose_s(std::size_t batch, MatrixView<const float> s) {
  const std::int64_t stride = stride_of(s.rows), depth = round_up(s.cols, kSide);
  AlignedVector<float>& to = s_transposed[batch];
  internal::grow(to, std::size_t(depth * stride));
  if (s.rows_are_contiguous() && s.row_stride >= s.cols)
    codelets::transpose(s.data, s.row_stride, s.rows, s.cols, to.data(), stride);
  else
    for (std::int64_t z = 0; z < s.cols; ++z)
      for (std::int64_t r = 0; r < s.rows; ++r) to[std::size_t(z * stride + r)] = s(r, z);
  std::fill_n(to.data() + s.cols * stride, (depth - s.cols) * stride, 0.0f);
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

// Q is multiplied with the transpose of S as a matrix of blocks of 16 x 16 is in a forward pass,
// which the kernels do at 0.9 of the peak; dot products of rows come to half of it.
void GradientPanel::State::add_by_own_kernel(std::size_t batch, MatrixView<const float> q) {
  const std::int64_t depth = ceil_div(q.cols, kSide), cols = s_cols.size();
  q_blocks.resize(std::size_t(depth * kSide * kSide));
  inputs.resize(std::size_t(depth));
  std::iota(inputs.begin(), inputs.end(), 0);
  const std::array<std::int32_t, 2> row_begin{0, std::int32_t(depth)};
  for (std::int64_t first = 0; first < q.rows; first += kSide) {
    const Range rows{first, std::min(first + kSide, q.rows)};
    cut_to_blocks(q.sub(rows, {0, q.cols}), q_blocks.data());
    codelets::place_sums(
        codelets::PlaceSums<float, std::int32_t, std::int32_t>{.block = {kSide, kSide},
                                                               .row_begin = row_begin,
                                                               .col = inputs.data(),
                                                               .values = q_blocks.data(),
                                                               .in = s_transposed[batch].data(),
                                                               .in_stride = stride_of(cols),
                                                               .out = panel.data() + first * cols,
                                                               .out_stride = cols,
                                                               .z = cols,
                                                               .replaces = batch == 0});
  }
}

void GradientPanel::State::add(std::size_t batch, Range rows) {
  const std::int64_t z = batches[batch].s.cols;
  if (z == 0 && batch == 0) std::fill(panel.begin(), panel.end(), 0.0f);
  if (z == 0) return;
  const MatrixView<const float> q = batches[batch].q_grad.sub(rows, {0, z});
  if (own_kernel)
    add_by_own_kernel(batch, q);
  else
    add_by_library(batch, in_rows(q, q_copy));
}

GradientPanel::GradientPanel(PanelSize size, std::span<const GradientOperands> batches,
                             bool own_kernel) {
  check_batches(batches);
  state_ = std::make_unique<State>(batches, own_kernel || internal::dense_library() == nullptr);
  state_->panel.resize(std::size_t(round_up(size.rows, kSide) * size.cols));
  state_->s_copies.resize(batches.size());
  state_->s_transposed.resize(batches.size());
  state_->s_rows.resize(batches.size());
}

GradientPanel::~GradientPanel() = default;
GradientPanel::GradientPanel(GradientPanel&&) noexcept = default;
GradientPanel& GradientPanel::operator=(GradientPanel&&) noexcept = default;

MatrixView<const float> GradientPanel::compute(Range rows, Range cols) {
  const DefaultFloatMode mode;
  State& s = *state_;
  s.read_columns(cols);
  for (std::size_t b = 0; b < s.batches.size(); ++b) s.add(b, rows);
  return {s.panel.data(), rows.size(), cols.size(), cols.size(), 1};
}

std::int64_t find_large(std::span<const float> values, float threshold,
                        std::span<std::uint32_t> positions) noexcept {
  return codelets::find_large(values, threshold, positions);
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
  internal::SharedParts units(count);
  executor.for_each(executor.threads(), [&](std::int64_t thread) {
    while (const auto unit = units.next()) {
      const std::int64_t row = unit->begin % down * size.rows, col = unit->begin / down * size.cols;
      const PanelAt at{
          {row, std::min(row + size.rows, rows)}, {col, std::min(col + size.cols, cols)}, thread};
      visit(at, panels[std::size_t(thread)].compute(at.rows, at.cols));
    }
  });
}

}  // namespace tessera::host
