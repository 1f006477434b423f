#include "tessera/distributed/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tessera/distributed/internal/rank_state.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/tree_sum.hpp"
#include "tessera/layer/check_weights.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/part.hpp"

namespace tessera::distributed {
namespace {

using internal::Grid;
using internal::GridPart;
using internal::Place;

}  // namespace

Range RankLayer::State::columns_of_batch() const {
  if (!splits_batch()) return {0, problem.size.z};
  const Range own = own_leaves(*ranks, cut.leaves);
  return {leaf_columns(cut, problem.size.z, own.begin).begin,
          leaf_columns(cut, problem.size.z, own.end).begin};
}

std::size_t RankLayer::State::index(std::int64_t group) const {
  const auto found = std::ranges::find(parts, group, &GroupPart::group);
  if (found == parts.end())
    throw_invalid(fmt::format("rank {} has nothing of group {}", ranks->rank(), group));
  return std::size_t(found - parts.begin());
}

std::unique_ptr<GridPart> RankLayer::State::make_part(std::int64_t group, Grid grid,
                                                      sparse::Csr<float> own) {
  return std::make_unique<GridPart>(setting, *ranks, problem, group, ranks_of(group),
                                    std::move(grid), std::move(own));
}

// Makes new groups those of the layer.
void RankLayer::State::take(std::vector<std::unique_ptr<GridPart>> next) {
  std::vector<GroupPart> of_next;
  for (const auto& group : next) of_next.push_back(group->part());
  groups = std::move(next);
  parts = std::move(of_next);
  place_groups();
}

// Counts the rows and values of the groups.
void RankLayer::State::place_groups() {
  const auto add = [](std::vector<Range>& all, std::int64_t size) {
    const std::int64_t begin = all.empty() ? 0 : all.back().end;
    all.push_back({begin, begin + size});
  };
  for (auto* const list : {&outputs, &inputs, &values}) list->clear();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    add(outputs, parts[g].outputs.size());
    add(inputs, parts[g].inputs.size());
    add(values, groups[g]->values());
  }
}

layer::LayerFacts RankLayer::State::facts() const {
  layer::LayerFacts facts{.problem = problem,
                          .passes = {true, problem.grad_a, problem.grad_w},
                          .has_weights = !groups.empty(),
                          .any_batch = !splits_batch(),
                          .works_on_results = true};
  facts.problem.size.z = batch.size();
  if (groups.empty()) return facts;
  facts.values = values.back().end;
  facts.output_rows = outputs.back().end;
  facts.input_rows = inputs.back().end;
  return facts;
}

RankLayer::RankLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                     Communicator& ranks, const Cut& cut)
    : LayerOf(std::make_unique<State>(problem, internal::RankSetting{cpu, &executor}, ranks, cut)) {
  check_problem(problem);
  if (const std::string why = why_not(cut, problem, ranks.size()); !why.empty())
    throw_invalid(fmt::format("a layer with {} over {} rank{}: {}", to_string(cut), ranks.size(),
                              ranks.size() == 1 ? "" : "s", why));
  if (cut.replicas == 0)
    state().cut.replicas = cheapest_replicas(problem, int(state().ranks_of(0).size()));
  state().batch = state().columns_of_batch();
}

RankLayer::State& RankLayer::state() const { return static_cast<State&>(backend()); }

std::optional<partitioner::Misfit> RankLayer::State::set_weights(
    std::vector<sparse::CheckedCsr<float>> weights) {
  require_same(*ranks, "set_weights",
               {given_problem(problem), given_caches(setting.cpu),
                given_text("cut", to_string(cut)), given_weights(weights)});
  // A matrix that cannot be cut is refused on all ranks, before any of them sends a part of one.
  std::vector<Grid> grids;
  for (std::size_t g = 0; g < weights.size(); ++g)
    grids.push_back(
        internal::grid_of(problem, cut.replicas,
                          cut_evenly(weights[g]->row_begin, problem.size.x, problem.block.rows,
                                     int(ranks_of(std::int64_t(g)).size())),
                          internal::column_counts(*weights[g])));
  std::vector<std::unique_ptr<GridPart>> parts_of_rank;
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const Range of_group = ranks_of(std::int64_t(g));
    const std::int64_t rank = ranks->rank();
    if (rank < of_group.begin || rank >= of_group.end) continue;
    const Place place = grids[g].forward(int(rank - of_group.begin));
    parts_of_rank.push_back(
        make_part(std::int64_t(g), grids[g], part_of(*weights[g], place.rows, place.columns)));
  }
  take(std::move(parts_of_rank));
  return {};
}

void RankLayer::set_rows(const RowCut& rows, sparse::Csr<float> own) {
  State& s = state();
  const auto call = s.caller.enter("set_rows");
  const Dims size = s.problem.size;
  if (size.g != 1 || s.cut.replicas != 1 || s.splits_batch())
    throw_invalid(
        fmt::format("set_rows: a layer of {} groups with {} takes whole matrices; call "
                    "set_weights",
                    size.g, to_string(s.cut)));
  check(rows, size.x, s.problem.block.rows, s.ranks->size());
  Problem part = s.problem;
  part.size.x = rows.of(s.ranks->rank()).size();
  layer::check_weight_matrix(part, own);
  sparse::check(own);
  require_same(*s.ranks, "set_rows",
               {given_problem(s.problem), given_caches(s.setting.cpu),
                given_text("cut", fmt::format("{}, rows from {}", to_string(s.cut),
                                              fmt::join(rows.begin, ", ")))});
  Grid grid = internal::grid_of(
      s.problem, s.cut.replicas, rows,
      sums_of_ranks(*s.ranks, "numbers of blocks of the columns", internal::column_counts(own)));
  std::vector<std::unique_ptr<GridPart>> groups;
  groups.push_back(s.make_part(0, std::move(grid), std::move(own)));
  s.version = layer::new_number();
  s.take(std::move(groups));
}

// A change of a group's pattern, prepared by a layer.
struct RankLayer::State::PreparedRank : layer::PreparedUpdate::State {
  std::int64_t group = 0;
  GridPart::Prepared part;
};

std::unique_ptr<layer::PreparedUpdate::State> RankLayer::State::prepare(
    const sparse::PatternChange& change, std::int64_t group) {
  auto prepared = std::make_unique<PreparedRank>();
  prepared->part = at(group).prepare(change);
  prepared->group = group;
  if (const auto& own = prepared->part.rows.update)
    prepared->change.assign(own->placed().begin(), own->placed().end());
  return prepared;
}

void RankLayer::State::commit(layer::PreparedUpdate::State& update) {
  auto& prepared = static_cast<PreparedRank&>(update);
  at(prepared.group).commit(prepared.part);
  place_groups();
}

void RankLayer::State::set_values(std::span<const float> values_of_group, std::int64_t group) {
  at(group).set_values(values_of_group);
}

verify::Rounding RankLayer::State::rounding(Pass pass) const {
  if (groups.empty()) throw_invalid("rounding: call set_weights first");
  verify::Rounding most = groups[0]->rounding(pass);
  for (const auto& group : groups)
    most.partials = std::max(most.partials, group->rounding(pass).partials);
  if (pass == Pass::GradW) most.partials += cut.leaves;
  return most;
}

const Cut& RankLayer::cut() const { return state().cut; }

std::span<const GroupPart> RankLayer::parts() const {
  check_group(0);
  return state().parts;
}

Range RankLayer::columns_of_batch() const { return state().batch; }

const sparse::Csr<float>& RankLayer::columns(std::int64_t group) const {
  check_group(group);
  GridPart& part = state().at(group);
  if (!state().problem.grad_a) throw_invalid("columns: the problem has no GradA");
  return part.columns().weights();
}

}  // namespace tessera::distributed
