#include "tessera/distributed/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/stopwatch.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/internal/grid_part.hpp"
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

template <class T>
MatrixView<T> rows_in(MatrixView<T> view, Range rows) {
  return view.sub(rows, {0, view.cols});
}

template <class T>
std::span<T> numbers_in(std::span<T> all, Range range) {
  return all.subspan(std::size_t(range.begin), std::size_t(range.size()));
}

// Multiplies by the derivative of a ReLU.
template <class T>
void derive(MatrixView<const T> where_positive, MatrixView<T> results) {
  for (std::int64_t r = 0; r < results.rows; ++r)
    for (std::int64_t c = 0; c < results.cols; ++c)
      if (!(float(where_positive(r, c)) > 0)) results(r, c) = T(0.0f);
}

// A change of a group's pattern, prepared by a layer.
struct PreparedRank : layer::PreparedUpdate::State {
  std::int64_t group = 0;
  GridPart::Prepared part;
};

}  // namespace

// The backend of a layer over ranks.
struct RankLayer::State : layer::BackendOf<PassTimes> {
  State(const Problem& of, internal::RankSetting with, Communicator& all, const Cut& by)
      : problem(of), setting(std::move(with)), ranks(&all), cut(by) {}

  Problem problem;
  internal::RankSetting setting;
  Communicator* ranks;
  Cut cut;
  Range batch;  // columns of this rank

  // With weights, the groups of this rank:
  std::vector<std::unique_ptr<GridPart>> groups;
  std::vector<GroupPart> parts;
  std::vector<Range> outputs, inputs, values;  // in the operands and gradients of the rank
  std::vector<float> sums;                     // gradients to add to others
  SumMemory memory;                            // of sums of leaves

  bool splits_batch() const { return cut.leaves > 0; }

  // Returns the ranks that share a group.
  Range ranks_of(std::int64_t group) const {
    if (splits_batch()) return {ranks->rank(), ranks->rank() + 1};
    return ranks_of_group(group, problem.size.g, ranks->size());
  }

  // Returns a group of this rank. Throws Error{InvalidArgument} for one that it does not have.
  GridPart& at(std::int64_t group) const {
    const auto found = std::ranges::find(parts, group, &GroupPart::group);
    if (found == parts.end())
      throw_invalid(fmt::format("rank {} has nothing of group {}", ranks->rank(), group));
    return *groups[std::size_t(found - parts.begin())];
  }

  layer::LayerFacts facts() const override {
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

  std::optional<partitioner::Misfit> set_weights(
      std::vector<sparse::CheckedCsr<float>> weights) override {
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
    std::vector<std::unique_ptr<GridPart>> next;
    for (std::size_t g = 0; g < weights.size(); ++g) {
      const Range of_group = ranks_of(std::int64_t(g));
      const std::int64_t rank = ranks->rank();
      if (rank < of_group.begin || rank >= of_group.end) continue;
      const Place place = grids[g].forward(int(rank - of_group.begin));
      next.push_back(
          make_part(std::int64_t(g), grids[g], part_of(*weights[g], place.rows, place.columns)));
    }
    take(std::move(next));
    return {};
  }

  // Make the part of a group, and make new groups those of the layer.
  std::unique_ptr<GridPart> make_part(std::int64_t group, Grid grid, sparse::Csr<float> own) {
    return std::make_unique<GridPart>(setting, *ranks, problem, group, ranks_of(group),
                                      std::move(grid), std::move(own));
  }
  void take(std::vector<std::unique_ptr<GridPart>> next) {
    std::vector<GroupPart> of_next;
    for (const auto& group : next) of_next.push_back(group->part());
    for (auto* const list : {&outputs, &inputs, &values}) list->reserve(next.size());
    groups = std::move(next);
    parts = std::move(of_next);
    place_groups();
  }

  // Counts the rows and values of the groups.
  void place_groups() {
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

  std::unique_ptr<layer::PreparedUpdate::State> prepare(const sparse::PatternChange& change,
                                                        std::int64_t group) override {
    auto prepared = std::make_unique<PreparedRank>();
    prepared->part = at(group).prepare(change);
    prepared->group = group;
    if (const auto& own = prepared->part.rows.update)
      prepared->change.assign(own->placed().begin(), own->placed().end());
    return prepared;
  }

  void commit(layer::PreparedUpdate::State& update) override {
    auto& prepared = static_cast<PreparedRank&>(update);
    at(prepared.group).commit(prepared.part);
    place_groups();
  }

  void set_values(std::span<const float> values_of_group, std::int64_t group) override {
    at(group).set_values(values_of_group);
  }
  void change_values(const layer::ChangePart& change, std::int64_t group) override {
    at(group).change_values(change);
  }
  const sparse::Csr<float>& weights_of(std::int64_t group) const override {
    return at(group).weights();
  }

  verify::Rounding rounding(Pass pass) const override {
    if (groups.empty()) throw_invalid("rounding: call set_weights first");
    verify::Rounding most = groups[0]->rounding(pass);
    for (const auto& group : groups)
      most.partials = std::max(most.partials, group->rounding(pass).partials);
    if (pass == Pass::GradW) most.partials += cut.leaves;
    return most;
  }

  bool repairs_parts() const override { return true; }
  double seconds(const PassTimes& times) const override { return times.host.seconds; }

  bool compute(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
               PassTimes& times) override {
    const DefaultFloatMode mode;
    return with_type(problem.data_type,
                     [&]<class T>(T) { return compute_as<T>(pass, operands, options, times); });
  }

 private:
  template <class T>
  bool compute_as(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
                  PassTimes& times) {
    const auto in = operands.in.as<T>();
    const auto out = operands.out.as<T>();
    switch (pass) {
      case Pass::Fwd:
        return run_pass(options, times, [&](std::size_t g, auto& of_group, auto& seconds) {
          if (!options.bias.empty()) of_group.bias = numbers_in(options.bias, outputs[g]);
          return groups[g]->rows().product(rows_in(in, inputs[g]), rows_in(out, outputs[g]),
                                           of_group, seconds);
        });
      case Pass::GradA: {
        const bool finished =
            run_pass(options, times, [&](std::size_t g, const auto& of_group, auto& seconds) {
              return groups[g]->columns().product(rows_in(in, outputs[g]), rows_in(out, inputs[g]),
                                                  of_group, seconds);
            });
        if (!options.where_positive.empty()) derive(options.where_positive.as<T>(), out);
        return finished;
      }
      case Pass::GradW:
        break;
    }
    return grad_w(in, operands.in_s.as<T>(), operands.gradients, options, times);
  }

  // Calls body(index of a group, options, times) for each group, until it or a stop ends the pass.
  template <class Body>
  bool run_pass(const layer::PassOptions& run, PassTimes& times, const Body& body) {
    const Stopwatch watch;
    const Traffic before = ranks->traffic();
    times = {};
    if (run.self_check != nullptr) *run.self_check = {};
    layer::PassOptions of_groups = run;
    std::int64_t steps = 0;  // of all groups
    if (run.progress)
      of_groups.progress = [&](const verify::Progress& at) { run.progress({at.step, steps++}); };
    bool goes_on = true;
    for (std::size_t g = 0; goes_on && g < groups.size(); ++g)
      goes_on = run_group(g, of_groups, times.host, body);
    const Traffic& after = ranks->traffic();
    times.host.seconds = watch.seconds();
    times.gather_seconds = after.wait_seconds - before.wait_seconds;
    times.received_bytes = after.received_bytes - before.received_bytes;
    return goes_on;
  }

  template <class Body>
  bool run_group(std::size_t g, const layer::PassOptions& run, host::HostTimes& times,
                 const Body& body) {
    // Ranks that all share the panels of a pass ask before each of them.
    const bool asks_inside = problem.size.g == 1 && cut.replicas == 1 && !splits_batch();
    if (!asks_inside && run.stop.stop_possible() &&
        any_rank(*ranks, "wishes to stop", run.stop.stop_requested()))
      return false;
    layer::PassOptions of_group = run;
    if (!asks_inside) of_group.stop = {};
    try {
      return body(g, of_group, times);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::CheckFailed || problem.size.g == 1) throw;
      throw Error(error.code(), fmt::format("group {}: {}", parts[g].group, error.what()));
    }
  }

  // Writes the gradients of all groups, or adds those of the whole batch to the caller's. With
  // leaves nothing is written if a rank fails.
  template <class T>
  bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
              const layer::PassOptions& options, PassTimes& times) {
    const bool adds = options.accumulate == layer::Accumulate::Yes;
    // A sum of leaves needs other ranks, which may fail before it is complete.
    const bool is_aside = adds || splits_batch();
    if (is_aside) sums.resize(gradients.size());
    const std::span<float> to = is_aside ? std::span<float>(sums) : gradients;
    const auto pass = [&](std::size_t g, const auto& of_group, auto& seconds) {
      const auto dq = rows_in(q_grad, outputs[g]);
      const auto in = rows_in(s, inputs[g]);
      const std::span<float> own = numbers_in(to, values[g]);
      if (!splits_batch()) return groups[g]->rows().gradients(dq, in, own, of_group, seconds);
      add_leaves<T>(*groups[g], dq, in, own, of_group, seconds);
      return true;
    };
    const bool finished = run_pass(options, times, pass);
    if (adds && finished)
      std::transform(to.begin(), to.end(), gradients.begin(), gradients.begin(), std::plus<>());
    else if (is_aside && finished)
      std::ranges::copy(to, gradients.begin());
    return finished;
  }

  // Adds up the gradients of the leaves of all ranks.
  template <class T>
  void add_leaves(GridPart& group, MatrixView<const T> q_grad, MatrixView<const T> s,
                  std::span<float> gradients, const layer::PassOptions& run,
                  host::HostTimes& times) {
    const std::int64_t first = batch.begin;
    const auto write_leaf = [&](std::int64_t leaf, std::span<float> sums_of_leaf) {
      const Range all = leaf_columns(cut, problem.size.z, leaf);
      const Range own{all.begin - first, all.end - first};
      group.rows().gradients(q_grad.sub({0, q_grad.rows}, own), s.sub({0, s.rows}, own),
                             sums_of_leaf, run, times);
    };
    tree_sum(*ranks, cut.leaves, gradients, write_leaf, memory);
  }
};

RankLayer::RankLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                     Communicator& ranks, const Cut& cut)
    : LayerOf(std::make_unique<State>(problem, internal::RankSetting{cpu, &executor}, ranks, cut)) {
  check_problem(problem);
  if (const std::string why = why_not(cut, problem, ranks.size()); !why.empty())
    throw_invalid(fmt::format("a layer with {} over {} rank{}: {}", to_string(cut), ranks.size(),
                              ranks.size() == 1 ? "" : "s", why));
  State& s = state();
  if (cut.replicas == 0) s.cut.replicas = cheapest_replicas(problem, int(s.ranks_of(0).size()));
  const std::int64_t z = problem.size.z;
  s.batch = {0, z};
  if (!s.splits_batch()) return;
  const Range leaves = own_leaves(ranks, cut.leaves);
  s.batch = {leaf_columns(cut, z, leaves.begin).begin, leaf_columns(cut, z, leaves.end).begin};
}

RankLayer::State& RankLayer::state() const { return static_cast<State&>(backend()); }

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

const Cut& RankLayer::cut() const { return state().cut; }

std::span<const GroupPart> RankLayer::parts() const {
  check_group(0);
  return state().parts;
}

GroupPart RankLayer::part(std::int64_t group) const {
  check_group(group);
  return state().at(group).part();
}

Range RankLayer::columns_of_batch() const { return state().batch; }

const sparse::Csr<float>& RankLayer::columns(std::int64_t group) const {
  check_group(group);
  GridPart& part = state().at(group);
  if (!state().problem.grad_a) throw_invalid("columns: the problem has no GradA");
  return part.columns().weights();
}

}  // namespace tessera::distributed
