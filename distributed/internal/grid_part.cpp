#include "tessera/distributed/internal/grid_part.hpp"

#include <numeric>
#include <utility>

namespace tessera::distributed::internal {
namespace {

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
                      grid_.transposed(ranks_.rank()), route_->pattern_of(fwd_.weights()));
  send_values();
}

GridPart::Prepared GridPart::prepare(const sparse::PatternChange& change) {
  Prepared prepared{.rows = fwd_.prepare(change), .transposed = {}};
  if (!transposed_) return prepared;
  prepared.transposed = transposed_->prepare(route_->change_of(change));
  return prepared;
}

void GridPart::commit(Prepared& prepared) {
  fwd_.commit(prepared.rows);
  if (!transposed_) return;
  transposed_->commit(prepared.transposed);
  route_->forget_pattern();
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
  if (transposed_)
    transposed_->set_values(route_->values_of(fwd_.weights(), transposed_->weights()));
}

verify::Rounding GridPart::rounding(Pass pass) const {
  return pass == Pass::GradA ? transposed_->rounding(pass) : fwd_.rounding(pass);
}

}  // namespace tessera::distributed::internal
