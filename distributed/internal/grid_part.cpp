#include "tessera/distributed/internal/grid_part.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/distributed/lists.hpp"

namespace tessera::distributed::internal {
namespace {

Range overlap(Range a, Range b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Problem of_one_group(Problem problem) {
  problem.size.g = 1;
  return problem;
}

Problem transposed(Problem problem) {
  std::swap(problem.size.x, problem.size.y);
  problem.block = problem.block.transposed();
  problem.grad_w = false;
  return of_one_group(problem);
}

std::vector<int> members(Range ranks) {
  std::vector<int> all(std::size_t(ranks.size()));
  std::iota(all.begin(), all.end(), int(ranks.begin));
  return all;
}

}  // namespace

GridPart::GridPart(const RankSetting& setting, Communicator& all, const Problem& problem,
                   std::int64_t group, Range of_group, Grid grid, sparse::Csr<float> own)
    : group_(group),
      ranks_(all, members(of_group)),
      grid_(std::move(grid)),
      fwd_(setting, ranks_, Pass::Fwd, of_one_group(problem), grid_.forward(ranks_.rank()),
           std::move(own)) {
  if (!problem.grad_a) return;
  route_.emplace(ranks_, grid_, problem.block);
  transposed_.emplace(setting, ranks_, Pass::GradA, transposed(problem),
                      grid_.transposed(ranks_.rank()), route_->transpose_of(fwd_.weights()));
}

// Sends rows of dS from where GradA has left them to the ranks that have these rows of S.
void GridPart::move_home(MatrixView<float> s_grad, bool is_checked) {
  const Range from = transposed_->place().outputs, home = place().inputs;
  const auto out = [&](int rank) {
    const Range rows = overlap(from, grid_.forward(rank).inputs);
    return std::span(moved_.elements())
        .subspan(std::size_t((rows.size() > 0 ? rows.begin - from.begin : 0) * s_grad.cols),
                 std::size_t(rows.size() * s_grad.cols));
  };
  std::vector<Matrix<float>> in;
  for (int rank = 0; rank < ranks_.size(); ++rank)
    in.emplace_back(overlap(grid_.transposed(rank).outputs, home).size(), s_grad.cols);
  const auto in_of = [&](int rank) { return std::span(in[std::size_t(rank)].elements()); };
  std::ranges::copy(out(ranks_.rank()), in_of(ranks_.rank()).begin());
  ranks_.exchange_all("GradA: rows of dS", out, in_of, is_checked);
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const Range rows = overlap(grid_.transposed(rank).outputs, home);
    for (std::int64_t r = 0; r < rows.size(); ++r)
      for (std::int64_t c = 0; c < s_grad.cols; ++c)
        s_grad(rows.begin - home.begin + r, c) = in[std::size_t(rank)](r, c);
  }
}

GridPart::Prepared GridPart::prepare(const sparse::PatternChange& change) {
  Prepared prepared{.rows = fwd_.prepare(change), .transposed = {}};
  if (transposed_) {
    const sparse::PatternChange of_transpose = route_->change_of(change);
    prepared.transposed = transposed_->prepare(of_transpose);
    route_->reserve(transposed_->weights().blocks() + std::ssize(of_transpose.added) -
                    std::ssize(of_transpose.removed));
  }
  return prepared;
}

void GridPart::commit(Prepared& prepared) {
  fwd_.commit(prepared.rows);
  if (!transposed_) return;
  transposed_->commit(prepared.transposed);
  route_->set_pattern(transposed_->weights());
}

void GridPart::set_values(std::span<const float> values) {
  fwd_.set_values(values);
  send_values();
}

void GridPart::change_values(const layer::ChangePart& change) {
  try {
    fwd_.change_values(change);
  } catch (...) {  // the transpose gets what was changed, and the other ranks wait for these values
    send_values();
    throw;
  }
  send_values();
}

void GridPart::send_values() {
  if (transposed_) transposed_->set_values(route_->values_of(fwd_.weights()));
}

verify::Rounding GridPart::rounding(Pass pass) const {
  return pass == Pass::GradA ? transposed_->rounding(pass) : fwd_.rounding(pass);
}

}  // namespace tessera::distributed::internal
