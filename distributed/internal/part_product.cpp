#include "tessera/distributed/internal/part_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::distributed::internal {
namespace {

// Returns the cut of the pieces [first, first + count) among themselves.
RowCut among(const RowCut& cut, int first, int count) {
  RowCut part;
  part.begin.clear();
  for (int i = 0; i <= count; ++i)
    part.begin.push_back(cut.begin[std::size_t(first + i)] - cut.begin[std::size_t(first)]);
  return part;
}

// Returns the cut whose pieces are `count` neighbouring pieces of another one.
RowCut joined(const RowCut& cut, int count) {
  RowCut part;
  part.begin.clear();
  for (int i = 0; i <= cut.ranks(); i += count) part.begin.push_back(cut.begin[std::size_t(i)]);
  return part;
}

std::span<const float> rows_in(const Matrix<float>& matrix, Range rows) {
  return std::span(matrix.elements())
      .subspan(std::size_t(rows.begin * matrix.cols()), std::size_t(rows.size() * matrix.cols()));
}

}  // namespace

PartProduct::PartProduct(const host::HostCpu& cpu, Executor& executor, Communicator& ranks,
                         GridPlace place)
    : cpu_(cpu),
      executor_(executor),
      run_(place.run),
      part_(place.part),
      of_part_(ranks, std::move(place.of_part)),
      of_run_(ranks, std::move(place.of_run)) {}

void PartProduct::set_weights(const Problem& problem, const sparse::Csr<float>& matrix,
                              const RowCut& rows, const RowCut& cols) {
  const int parts = of_run_.size(), runs = of_part_.size();
  const RowCut all_parts = joined(cols, runs), all_runs = joined(rows, parts);
  for (int part = 0; part < parts; ++part)
    if (all_parts.of(part).size() == 0)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("set_weights: part {} of the columns is empty; {} replicas are too "
                              "many for this matrix",
                              part, parts));
  columns_ = all_parts.of(part_);
  rows_ = all_runs.of(run_);
  pieces_ = among(rows, run_ * parts, parts);
  Problem of_part = problem;
  of_part.size.y = columns_.size();
  layer_.emplace(of_part, cpu_, executor_, of_part_,
                 LayerOptions{.outputs = all_runs, .inputs = among(cols, part_ * runs, runs)});
  layer_->set_weights(sparse::transpose(rows_of(sparse::transpose(matrix), columns_)));
}

Range PartProduct::outputs() const {
  const Range piece = pieces_.of(part_);
  return {rows_.begin + piece.begin, rows_.begin + piece.end};
}

Range PartProduct::inputs() const {
  const Range own = layer_->inputs().of(run_);
  return {columns_.begin + own.begin, columns_.begin + own.end};
}

void PartProduct::product(MatrixView<const float> s, MatrixView<float> q) {
  if (run_rows_.rows() != rows_.size() || run_rows_.cols() != s.cols)
    run_rows_ = Matrix<float>(rows_.size(), s.cols);
  layer_->forward<float>(s, run_rows_.view());
  const int count = of_run_.size(), rank = of_run_.rank();
  const std::int64_t piece = q.rows * s.cols;
  received_.resize(std::size_t(piece * count));
  const auto of_part = [&](int part) {
    return std::span(received_).subspan(std::size_t(part * piece), std::size_t(piece));
  };
  std::vector<SendPiece> sends;
  std::vector<ReceivePiece> receives;
  for (int other = 0; other < count; ++other) {
    if (other == rank) continue;
    sends.push_back({other, std::as_bytes(rows_in(run_rows_, pieces_.of(other)))});
    receives.push_back({other, std::as_writable_bytes(of_part(other))});
  }
  of_run_.exchange("partial sums", sends, receives);
  const std::int64_t first = pieces_.of(rank).begin;
  for (std::int64_t r = 0; r < q.rows; ++r)
    for (std::int64_t c = 0; c < s.cols; ++c) {
      float sum = 0;
      for (int part = 0; part < count; ++part) {
        const float value =
            part == rank ? run_rows_(first + r, c) : of_part(part)[std::size_t(r * s.cols + c)];
        sum = part == 0 ? value : sum + value;
      }
      q(r, c) = sum;
    }
}

MatrixView<const float> PartProduct::gather_run(MatrixView<const float> own) {
  if (run_rows_.rows() != rows_.size() || run_rows_.cols() != own.cols)
    run_rows_ = Matrix<float>(rows_.size(), own.cols);
  const int rank = of_run_.rank();
  const std::int64_t first = pieces_.of(rank).begin;
  for (std::int64_t r = 0; r < own.rows; ++r)
    for (std::int64_t c = 0; c < own.cols; ++c) run_rows_(first + r, c) = own(r, c);
  std::vector<SendPiece> sends;
  std::vector<ReceivePiece> receives;
  for (int other = 0; other < of_run_.size(); ++other) {
    if (other == rank) continue;
    sends.push_back({other, std::as_bytes(rows_in(run_rows_, pieces_.of(rank)))});
    const Range rows = pieces_.of(other);
    receives.push_back(
        {other, std::as_writable_bytes(std::span(run_rows_.elements())
                                           .subspan(std::size_t(rows.begin * own.cols),
                                                    std::size_t(rows.size() * own.cols)))});
  }
  of_run_.exchange("GradW: rows of dQ", sends, receives);
  return std::as_const(run_rows_).view();
}

}  // namespace tessera::distributed::internal
