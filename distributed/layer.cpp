#include "tessera/distributed/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/base/float_mode.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/internal/grid_part.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/tree_sum.hpp"
#include "tessera/layer/check_weights.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::distributed {
namespace {

using internal::Grid;
using internal::GridPart;
using internal::Place;
using Matrices = std::span<const sparse::CheckedCsr<float>>;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::InvalidArgument, why); }

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

}  // namespace

struct RankLayer::State : layer::BackendOf<PassTimes> {
  State(const Problem& of, internal::RankSetting with, Communicator& all, const Cut& by)
      : problem(of), setting(std::move(with)), ranks(&all), cut(by) {}

  Problem problem;
  internal::RankSetting setting;
  Communicator* ranks;
  Cut cut;
  Range batch;  // columns of this rank

  struct PreparedRank;

  // With weights, the groups of this rank:
  std::vector<std::unique_ptr<GridPart>> groups;
  std::vector<GroupPart> parts;
  std::vector<Range> outputs, inputs, values;  // in the operands and gradients of the rank
  std::vector<float> sums, of_leaf;            // gradients to add to others
  std::int64_t version = 0;                    // another one after each change

  layer::LayerFacts facts() const override;
  std::optional<partitioner::Misfit> set_weights(
      std::vector<sparse::CheckedCsr<float>> weights) override;
  std::unique_ptr<layer::PreparedUpdate::State> prepare(const sparse::PatternChange& change,
                                                        std::int64_t group) override;
  void commit(layer::PreparedUpdate::State& update) override;
  void set_values(std::span<const float> values_of_group, std::int64_t group) override;
  void change_values(const layer::ChangePart& change, std::int64_t group) override {
    GridPart& part = at("change_values", group);
    version = layer::new_number();
    part.change_values(change);
  }
  const sparse::Csr<float>& weights_of(std::int64_t group) const override {
    return at("weights", group).weights();
  }
  verify::Rounding rounding(Pass pass) const override;
  bool repairs_parts() const override { return true; }
  double seconds(const PassTimes& times) const override { return times.host.seconds; }
  bool compute(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
               PassTimes& times) override;
  template <class T>
  bool compute_as(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
                  PassTimes& times);

  bool splits_batch() const { return cut.leaves > 0; }
  void require_weights(std::string_view call) const {
    if (groups.empty()) refuse(fmt::format("{}: set_weights comes first", call));
  }

  // Returns the ranks that share a group.
  Range ranks_of(std::int64_t group) const {
    if (splits_batch()) return {ranks->rank(), ranks->rank() + 1};
    return ranks_of_group(group, problem.size.g, ranks->size());
  }

  Range leaf_columns(std::int64_t leaf) const {
    return distributed::leaf_columns(cut, problem.size.z, leaf);
  }
  Range columns_of_batch() const {
    if (!splits_batch()) return {0, problem.size.z};
    const Range own = TreeSum(*ranks, cut.leaves, 0).leaves();
    if (own.size() == 0) return {0, 0};
    return {leaf_columns(own.begin).begin, leaf_columns(own.end - 1).end};
  }

  // Returns the sum of a number of all groups.
  template <class Number>
  std::int64_t sum(const Number& number) const {
    std::int64_t sum = 0;
    for (const auto& group : groups) sum += number(*group);
    return sum;
  }

  std::size_t index(std::string_view call, std::int64_t group) const {
    require_weights(call);
    const auto found = std::ranges::find(parts, group, &GroupPart::group);
    if (found == parts.end())
      refuse(fmt::format("{}: rank {} has nothing of group {}", call, ranks->rank(), group));
    return std::size_t(found - parts.begin());
  }
  GridPart& at(std::string_view call, std::int64_t group) const {
    return *groups[index(call, group)];
  }

  std::vector<Given> given(Matrices weights) const {
    std::vector<Given> all{
        given_problem(problem),
        given_caches(setting.cpu),
        given_cut("cut of the outputs", cut.rows.value_or(RowCut())),
        given_cut("cut of the inputs", cut.cols.value_or(RowCut())),
        {"number of replicas", Digest().add(std::int64_t{cut.replicas}).value(),
         std::to_string(cut.replicas)},
        {"number of leaves", Digest().add(cut.leaves).value(), std::to_string(cut.leaves)},
        {"choice of panels", Digest().add(std::int64_t{cut.panels}).value(),
         cut.panels ? "panels" : "no panels"}};
    if (!weights.empty()) all.push_back(given_weights(weights));
    return all;
  }

  std::unique_ptr<GridPart> make_part(std::int64_t group, Grid grid, sparse::Csr<float> own) {
    return std::make_unique<GridPart>(setting, *ranks, problem, group, ranks_of(group),
                                      std::move(grid), std::move(own));
  }

  // Makes new groups those of the layer.
  void take(std::vector<std::unique_ptr<GridPart>> next) {
    std::vector<GroupPart> of_next;
    for (const auto& group : next) {
      const Place& place = group->place();
      of_next.push_back({group->group(), place.outputs, place.inputs, place.rows, place.columns});
    }
    groups = std::move(next);
    parts = std::move(of_next);
    version = layer::new_number();
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

  // Calls body(index of a group, options, times) for each group, until it or a stop ends the pass.
  template <class Body>
  bool run_pass(const layer::PassOptions& run, PassTimes& times, const Body& body) {
    const double begin = seconds_now();
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
    times.host.seconds = seconds_now() - begin;
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

  // Writes the gradients of all groups, or adds those of the whole batch to the caller's.
  template <class T>
  bool grad_w(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
              const layer::PassOptions& options, PassTimes& times) {
    const bool adds = options.accumulate == layer::Accumulate::Yes;
    if (adds) sums.resize(gradients.size());
    const std::span<float> to = adds ? std::span<float>(sums) : gradients;
    const auto pass = [&](std::size_t g, const auto& of_group, auto& seconds) {
      const auto dq = rows_in(q_grad, outputs[g]);
      const auto in = rows_in(s, inputs[g]);
      const std::span<float> own = numbers_in(to, values[g]);
      if (!splits_batch()) return groups[g]->template grad_w<T>(dq, in, own, of_group, seconds);
      add_leaves<T>(*groups[g], dq, in, own, of_group, seconds);
      return true;
    };
    const bool finished = run_pass(options, times, pass);
    if (adds && finished)
      std::transform(to.begin(), to.end(), gradients.begin(), gradients.begin(), std::plus<>());
    return finished;
  }

  // Adds up the gradients of the leaves of all ranks.
  template <class T>
  void add_leaves(GridPart& group, MatrixView<const T> q_grad, MatrixView<const T> s,
                  std::span<float> gradients, const layer::PassOptions& run,
                  host::HostTimes& times) {
    TreeSum tree(*ranks, cut.leaves, std::ssize(gradients));
    of_leaf.resize(gradients.size());
    const std::int64_t first = batch.begin;
    for (std::int64_t i = tree.leaves().begin; i < tree.leaves().end; ++i) {
      const Range all = leaf_columns(i), own{all.begin - first, all.end - first};
      group.grad_w<T>(q_grad.sub({0, q_grad.rows}, own), s.sub({0, s.rows}, own), of_leaf, run,
                      times);
      tree.add(of_leaf);
    }
    tree.finish(gradients);
  }
};

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

bool RankLayer::State::compute(Pass pass, const layer::Operands& operands,
                               const layer::PassOptions& options, PassTimes& times) {
  const DefaultFloatMode mode;
  return with_type(problem.data_type,
                   [&]<class T>(T) { return compute_as<T>(pass, operands, options, times); });
}

template <class T>
bool RankLayer::State::compute_as(Pass pass, const layer::Operands& operands,
                                  const layer::PassOptions& options, PassTimes& times) {
  const auto in = operands.in.as<T>();
  const auto out = operands.out.as<T>();
  switch (pass) {
    case Pass::Fwd:
      return run_pass(options, times, [&](std::size_t g, auto& of_group, auto& seconds) {
        if (!options.bias.empty()) of_group.bias = numbers_in(options.bias, outputs[g]);
        return groups[g]->template forward<T>(rows_in(in, inputs[g]), rows_in(out, outputs[g]),
                                              of_group, seconds);
      });
    case Pass::GradA: {
      const bool finished =
          run_pass(options, times, [&](std::size_t g, const auto& of_group, auto& seconds) {
            return groups[g]->template grad_a<T>(rows_in(in, outputs[g]), rows_in(out, inputs[g]),
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

RankLayer::RankLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                     Communicator& ranks, const Cut& cut)
    : LayerOf(std::make_unique<State>(problem, internal::RankSetting{cpu, &executor, cut.panels},
                                      ranks, cut)) {
  check_problem(problem);
  if (const std::string why = why_not(cut, problem, ranks.size()); !why.empty())
    refuse(fmt::format("a layer with {} over {} rank{}: {}", to_string(cut), ranks.size(),
                       ranks.size() == 1 ? "" : "s", why));
  if (cut.replicas == 0)
    state().cut.replicas = cheapest_replicas(problem, int(state().ranks_of(0).size()));
  state().batch = state().columns_of_batch();
}

RankLayer::State& RankLayer::state() const { return static_cast<State&>(backend()); }

std::optional<partitioner::Misfit> RankLayer::State::set_weights(
    std::vector<sparse::CheckedCsr<float>> weights) {
  require_same(*ranks, "set_weights", given(weights));
  // A matrix that cannot be cut is refused on all ranks, before any of them sends a part of one.
  std::vector<Grid> grids;
  for (std::size_t g = 0; g < weights.size(); ++g)
    grids.push_back(
        internal::grid_of(problem, cut, *weights[g], int(ranks_of(std::int64_t(g)).size())));
  std::vector<std::unique_ptr<GridPart>> parts_of_rank;
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const Range of_group = ranks_of(std::int64_t(g));
    const std::int64_t rank = ranks->rank();
    if (rank < of_group.begin || rank >= of_group.end) continue;
    const Place place = grids[g].forward(int(rank - of_group.begin));
    parts_of_rank.push_back(
        make_part(std::int64_t(g), grids[g], internal::part_of(*weights[g], grids[g], place)));
  }
  take(std::move(parts_of_rank));
  return {};
}

bool RankLayer::can_set_rows() const {
  const State& s = state();
  return s.problem.size.g == 1 && s.cut.replicas == 1 && !s.splits_batch();
}

void RankLayer::set_rows(const RowCut& rows, sparse::Csr<float> own) {
  State& s = state();
  const auto call = s.caller.enter("set_rows");
  const Dims size = s.problem.size;
  if (!can_set_rows())
    refuse(
        fmt::format("set_rows: a layer of {} groups with {} takes whole matrices; call "
                    "set_weights",
                    size.g, to_string(s.cut)));
  check(rows, size.x, s.problem.block.rows, s.ranks->size());
  Problem part = s.problem;
  part.size.x = rows.of(s.ranks->rank()).size();
  layer::check_weight_matrix(part, own);
  sparse::check(own);
  std::vector<Given> given = s.given({});
  given.push_back(given_cut("cut of the outputs", rows));
  require_same(*s.ranks, "set_rows", given);
  Grid grid{.rows = rows, .cols = {}, .replicas = 1};
  grid.cols = s.cut.cols ? *s.cut.cols
                         : cut_evenly(sums_of_ranks(*s.ranks, "numbers of blocks of the columns",
                                                    internal::column_counts(own)),
                                      size.y, s.problem.block.cols, s.ranks->size());
  std::vector<std::unique_ptr<GridPart>> groups;
  groups.push_back(s.make_part(0, std::move(grid), std::move(own)));
  s.take(std::move(groups));
}

// A change of a group's pattern, prepared by a layer.
struct RankLayer::State::PreparedRank : layer::PreparedUpdate::State {
  std::int64_t version = 0;  // of the weights that it was prepared for
  std::int64_t group = 0;
  GridPart::Prepared part;
};

std::unique_ptr<layer::PreparedUpdate::State> RankLayer::State::prepare(
    const sparse::PatternChange& change, std::int64_t group) {
  auto prepared = std::make_unique<PreparedRank>();
  prepared->part = at("change of the pattern", group).prepare(change);
  prepared->version = version;
  prepared->group = group;
  if (const auto& own = prepared->part.rows.update)
    prepared->change.assign(own->placed().begin(), own->placed().end());
  return prepared;
}

void RankLayer::State::commit(layer::PreparedUpdate::State& update) {
  auto* const prepared = dynamic_cast<PreparedRank*>(&update);
  if (prepared == nullptr || prepared->version != version)
    refuse(
        "commit: this change was prepared for another layer, or the layer has changed since; call "
        "prepare_update of this layer again");
  version = layer::new_number();
  at("commit", prepared->group).commit(prepared->part);
  place_groups();
}

void RankLayer::State::set_values(std::span<const float> values_of_group, std::int64_t group) {
  GridPart& part = at("set_values", group);
  if (std::ssize(values_of_group) != part.values())
    refuse(fmt::format("set_values: there are {} values; rank {} has {} of group {}",
                       values_of_group.size(), ranks->rank(), part.values(), group));
  version = layer::new_number();
  part.set_values(values_of_group);
}

verify::Rounding RankLayer::State::rounding(Pass pass) const {
  require_weights("rounding");
  if (!facts().passes[std::size_t(pass)])
    refuse(fmt::format("rounding: the problem does not include {}", to_string(pass)));
  verify::Rounding most = groups[0]->rounding(pass);
  for (const auto& group : groups)
    most.partials = std::max(most.partials, group->rounding(pass).partials);
  if (pass == Pass::GradW) most.partials += cut.leaves;
  return most;
}

Cut RankLayer::cut(std::int64_t group) const {
  Cut cut = state().cut;
  if (state().groups.empty() || state().splits_batch()) return cut;
  const Grid& grid = state().at("cut", group).grid();
  cut.rows = grid.rows;
  cut.cols = grid.cols;
  return cut;
}

std::span<const GroupPart> RankLayer::parts() const {
  state().require_weights("parts");
  return state().parts;
}

Range RankLayer::columns_of_batch() const { return state().batch; }

Range RankLayer::outputs(std::int64_t group) const {
  return state().parts[state().index("outputs", group)].outputs;
}

Range RankLayer::inputs(std::int64_t group) const {
  return state().parts[state().index("inputs", group)].inputs;
}

const sparse::Csr<float>& RankLayer::columns(std::int64_t group) const {
  const GridPart& part = state().at("columns", group);
  if (!state().problem.grad_a) refuse("columns: the problem has no GradA");
  return part.transpose();
}

std::int64_t RankLayer::all_values() const {
  return state().sum(std::mem_fn(&GridPart::all_values));
}

std::int64_t RankLayer::memory_bytes() const {
  return state().sum(std::mem_fn(&GridPart::memory_bytes));
}

}  // namespace tessera::distributed
