#include "tessera/distributed/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
#include "tessera/base/overlap.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/internal/grid_part.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/tree_sum.hpp"
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

}  // namespace

struct RankLayer::State {
  Problem problem;
  internal::RankSetting setting;
  Communicator* ranks;
  Cut cut;

  // With weights, the groups of this rank:
  std::vector<std::unique_ptr<GridPart>> groups;
  std::vector<GroupPart> parts;
  std::vector<Range> outputs, inputs, values;  // in the operands and gradients of the rank
  std::vector<float> sums, of_leaf;            // gradients to add to others

  bool splits_batch() const { return cut.leaves > 0; }
  void require_weights(std::string_view call) const {
    if (groups.empty()) refuse(fmt::format("{}: set_weights comes first", call));
  }

  // Returns the ranks that share a group.
  Range ranks_of(std::int64_t group) const {
    if (splits_batch()) return {ranks->rank(), ranks->rank() + 1};
    return ranks_of_group(group, problem.size.g, ranks->size());
  }

  // Leaves are pairs of columns, so that no panel of any rank ends with a single column.
  Range leaf_columns(std::int64_t leaf) const {
    const std::int64_t pairs = problem.size.z / 2;
    return {pairs * leaf / cut.leaves * 2, pairs * (leaf + 1) / cut.leaves * 2};
  }
  Range batch() const {
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
        {"number of leaves", Digest().add(cut.leaves).value(), std::to_string(cut.leaves)}};
    if (!weights.empty()) all.push_back(given_weights(weights));
    return all;
  }

  void check_matrix(std::string_view call, const sparse::Csr<float>& m, Dims size) const {
    const BlockShape block = problem.block;
    if (m.rows != size.x || m.cols != size.y || m.block != block)
      refuse(
          fmt::format("{}: the matrix is {} x {} in blocks of {} x {}; rank {} takes {} x {} in "
                      "blocks of {} x {}",
                      call, m.rows, m.cols, m.block.rows, m.block.cols, ranks->rank(), size.x,
                      size.y, block.rows, block.cols));
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

  template <class T>
  void check_operand(const char* call, const char* name, MatrixView<T> view, std::int64_t rows,
                     std::int64_t cols) const {
    if (data_type_of<std::remove_const_t<T>>() != problem.data_type)
      refuse(fmt::format("{}: {} has another type than the layer", call, name));
    if (splits_batch()) cols = batch().size();
    if (view.rows == rows && view.cols == cols) return;
    refuse(fmt::format("{}: {} is {} x {}, but rank {} has {} x {} of it", call, name, view.rows,
                       view.cols, ranks->rank(), rows, cols));
  }

  // Calls body(index of a group, options, times) for each group, until it or a stop ends the pass.
  template <class Body>
  bool run_pass(const verify::RunOptions& run, PassTimes& times, const Body& body) {
    const double begin = seconds_now();
    const Traffic before = ranks->traffic();
    times = {};
    if (run.self_check != nullptr) *run.self_check = {};
    bool goes_on = true;
    for (std::size_t g = 0; goes_on && g < groups.size(); ++g)
      goes_on = run_group(g, run, times.host, body);
    const Traffic& after = ranks->traffic();
    times.host.seconds = seconds_now() - begin;
    times.gather_seconds = after.wait_seconds - before.wait_seconds;
    times.received_bytes = after.received_bytes - before.received_bytes;
    return goes_on;
  }

  template <class Body>
  bool run_group(std::size_t g, const verify::RunOptions& run, host::HostTimes& times,
                 const Body& body) {
    // Ranks that all share the panels of a pass ask before each of them.
    const bool asks_inside = problem.size.g == 1 && cut.replicas == 1 && !splits_batch();
    if (!asks_inside && run.stop.stop_possible() &&
        any_rank(*ranks, "wishes to stop", run.stop.stop_requested()))
      return false;
    verify::RunOptions of_group = run;
    if (!asks_inside) of_group.stop = {};
    try {
      return body(g, of_group, times);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::CheckFailed || problem.size.g == 1) throw;
      throw Error(error.code(), fmt::format("group {}: {}", parts[g].group, error.what()));
    }
  }

  // Adds up the gradients of the leaves of all ranks.
  template <class T>
  void add_leaves(GridPart& group, MatrixView<const T> q_grad, MatrixView<const T> s,
                  std::span<float> gradients, const verify::RunOptions& run,
                  host::HostTimes& times) {
    TreeSum tree(*ranks, cut.leaves, std::ssize(gradients));
    of_leaf.resize(gradients.size());
    const std::int64_t first = batch().begin;
    for (std::int64_t i = tree.leaves().begin; i < tree.leaves().end; ++i) {
      const Range all = leaf_columns(i), own{all.begin - first, all.end - first};
      group.grad_w<T>(q_grad.sub({0, q_grad.rows}, own), s.sub({0, s.rows}, own), of_leaf, run,
                      times);
      tree.add(of_leaf);
    }
    tree.finish(gradients);
  }
};

RankLayer::RankLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                     Communicator& ranks, const Cut& cut)
    : state_(std::unique_ptr<State>(new State{
          problem, {cpu, &executor, cut.panels}, &ranks, cut, {}, {}, {}, {}, {}, {}, {}})) {
  check_problem(problem);
  if (const std::string why = why_not(cut, problem, ranks.size()); !why.empty())
    refuse(fmt::format("a layer with {} over {} rank{}: {}", to_string(cut), ranks.size(),
                       ranks.size() == 1 ? "" : "s", why));
  if (cut.replicas == 0)
    state_->cut.replicas = cheapest_replicas(problem, int(state_->ranks_of(0).size()));
}

RankLayer::~RankLayer() = default;
RankLayer::RankLayer(RankLayer&&) noexcept = default;
RankLayer& RankLayer::operator=(RankLayer&&) noexcept = default;

void RankLayer::set_weights(const sparse::CheckedCsr<float>& weights) {
  set_weights({&weights, 1});
}

void RankLayer::set_weights(std::span<const sparse::CheckedCsr<float>> weights) {
  State& s = *state_;
  if (std::ssize(weights) != s.problem.size.g)
    refuse(fmt::format("set_weights: there are {} matrices for {} groups", weights.size(),
                       s.problem.size.g));
  for (const sparse::CheckedCsr<float>& matrix : weights)
    s.check_matrix("set_weights", *matrix, s.problem.size_in_blocks());
  require_same(*s.ranks, "set_weights", s.given(weights));
  // A matrix that cannot be cut is refused on all ranks, before any of them sends a part of one.
  std::vector<Grid> grids;
  for (std::size_t g = 0; g < weights.size(); ++g)
    grids.push_back(
        internal::grid_of(s.problem, s.cut, *weights[g], int(s.ranks_of(std::int64_t(g)).size())));
  std::vector<std::unique_ptr<GridPart>> groups;
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const Range of_group = s.ranks_of(std::int64_t(g));
    const std::int64_t rank = s.ranks->rank();
    if (rank < of_group.begin || rank >= of_group.end) continue;
    const Place place = grids[g].forward(int(rank - of_group.begin));
    groups.push_back(
        s.make_part(std::int64_t(g), grids[g], internal::part_of(*weights[g], grids[g], place)));
  }
  s.take(std::move(groups));
}

bool RankLayer::can_set_rows() const {
  const State& s = *state_;
  return s.problem.size.g == 1 && s.cut.replicas == 1 && !s.splits_batch();
}

void RankLayer::set_rows(const RowCut& rows, sparse::Csr<float> own) {
  State& s = *state_;
  const Dims size = s.problem.size;
  if (!can_set_rows())
    refuse(
        fmt::format("set_rows: a layer of {} groups with {} takes whole matrices; call "
                    "set_weights",
                    size.g, to_string(s.cut)));
  check(rows, size.x, s.problem.block.rows, s.ranks->size());
  Dims part = s.problem.size_in_blocks();
  part.x = round_up(rows.of(s.ranks->rank()).size(), s.problem.block.rows);
  s.check_matrix("set_rows", own, part);
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

void RankLayer::update_weights(const sparse::PatternChange& change, std::int64_t group) {
  state_->at("update_weights", group).update_weights(change);
  state_->place_groups();
}

void RankLayer::set_values(std::span<const float> values, std::int64_t group) {
  GridPart& part = state_->at("set_values", group);
  if (std::ssize(values) != part.values())
    refuse(fmt::format("set_values: there are {} values; rank {} has {} of group {}", values.size(),
                       state_->ranks->rank(), part.values(), group));
  part.set_values(values);
}

void RankLayer::change_parts(const host::ChangePart& change, std::int64_t group) {
  state_->at("change_values", group).change_values(change);
}

template <class T>
bool RankLayer::forward(MatrixView<const T> s, MatrixView<T> q, const host::ForwardOptions& after,
                        const verify::RunOptions& options, PassTimes& times) {
  const DefaultFloatMode mode;
  State& state = *state_;
  state.require_weights("forward");
  state.check_operand("forward", "s", s, state.inputs.back().end, s.cols);
  state.check_operand("forward", "q", q, state.outputs.back().end, s.cols);
  if (!after.bias.empty() && std::ssize(after.bias) != q.rows)
    refuse(fmt::format("forward: the bias has {} numbers; rank {} has {} rows of Q",
                       after.bias.size(), state.ranks->rank(), q.rows));
  check_no_overlap("forward", footprint("q", q),
                   std::array{footprint("s", s), footprint("bias", after.bias)});
  return state.run_pass(options, times, [&](std::size_t g, const auto& run, auto& seconds) {
    host::ForwardOptions of_group = after;
    if (!after.bias.empty()) of_group.bias = numbers_in(after.bias, state.outputs[g]);
    return state.groups[g]->template forward<T>(
        rows_in(s, state.inputs[g]), rows_in(q, state.outputs[g]), of_group, run, seconds);
  });
}

template <class T>
bool RankLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                       const host::GradAOptions<T>& after, const verify::RunOptions& options,
                       PassTimes& times) {
  const DefaultFloatMode mode;
  State& state = *state_;
  state.require_weights("grad_a");
  if (!state.problem.grad_a) refuse("grad_a: the problem has no GradA");
  state.check_operand("grad_a", "q_grad", q_grad, state.outputs.back().end, q_grad.cols);
  state.check_operand("grad_a", "s_grad", s_grad, state.inputs.back().end, q_grad.cols);
  const MatrixView<const T> mask = after.where_positive;
  if (mask.data != nullptr)
    state.check_operand("grad_a", "where_positive", mask, state.inputs.back().end, q_grad.cols);
  check_no_overlap("grad_a", footprint("s_grad", s_grad),
                   std::array{footprint("q_grad", q_grad), footprint("where_positive", mask)});
  const auto pass = [&](std::size_t g, const auto& run, auto& seconds) {
    return state.groups[g]->template grad_a<T>(rows_in(q_grad, state.outputs[g]),
                                               rows_in(s_grad, state.inputs[g]), run, seconds);
  };
  const bool finished = state.run_pass(options, times, pass);
  for (std::int64_t r = 0; mask.data != nullptr && r < s_grad.rows; ++r)
    for (std::int64_t c = 0; c < s_grad.cols; ++c)
      if (!(float(mask(r, c)) > 0)) s_grad(r, c) = T(0.0f);
  return finished;
}

template <class T>
bool RankLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                       std::span<float> gradients, host::Accumulate accumulate,
                       const verify::RunOptions& options, PassTimes& times) {
  const DefaultFloatMode mode;
  State& state = *state_;
  state.require_weights("grad_w");
  if (!state.problem.grad_w) refuse("grad_w: the problem has no GradW");
  state.check_operand("grad_w", "q_grad", q_grad, state.outputs.back().end, s.cols);
  state.check_operand("grad_w", "s", s, state.inputs.back().end, s.cols);
  if (std::ssize(gradients) != values())
    refuse(fmt::format("grad_w: there are {} gradients for {} values", std::ssize(gradients),
                       values()));
  check_no_overlap("grad_w", footprint("gradients", gradients),
                   std::array{footprint("q_grad", q_grad), footprint("s", s)});
  // The gradients of the whole batch are summed before they are added to the caller's.
  const bool adds = accumulate == host::Accumulate::Yes;
  if (adds) state.sums.resize(gradients.size());
  const std::span<float> sums = adds ? std::span<float>(state.sums) : gradients;
  const auto pass = [&](std::size_t g, const auto& run, auto& seconds) {
    const auto dq = rows_in(q_grad, state.outputs[g]);
    const auto in = rows_in(s, state.inputs[g]);
    const std::span<float> to = numbers_in(sums, state.values[g]);
    if (!state.splits_batch()) return state.groups[g]->template grad_w<T>(dq, in, to, run, seconds);
    state.template add_leaves<T>(*state.groups[g], dq, in, to, run, seconds);
    return true;
  };
  const bool finished = state.run_pass(options, times, pass);
  if (adds && finished)
    std::transform(sums.begin(), sums.end(), gradients.begin(), gradients.begin(), std::plus<>());
  return finished;
}

const Problem& RankLayer::problem() const { return state_->problem; }

Cut RankLayer::cut(std::int64_t group) const {
  Cut cut = state_->cut;
  if (state_->groups.empty() || state_->splits_batch()) return cut;
  const Grid& grid = state_->at("cut", group).grid();
  cut.rows = grid.rows;
  cut.cols = grid.cols;
  return cut;
}

std::span<const GroupPart> RankLayer::parts() const {
  state_->require_weights("parts");
  return state_->parts;
}

Range RankLayer::batch() const { return state_->batch(); }

Range RankLayer::outputs(std::int64_t group) const {
  return state_->parts[state_->index("outputs", group)].outputs;
}

Range RankLayer::inputs(std::int64_t group) const {
  return state_->parts[state_->index("inputs", group)].inputs;
}

std::int64_t RankLayer::output_rows() const {
  state_->require_weights("output_rows");
  return state_->outputs.back().end;
}

std::int64_t RankLayer::input_rows() const {
  state_->require_weights("input_rows");
  return state_->inputs.back().end;
}

const sparse::Csr<float>& RankLayer::weights(std::int64_t group) const {
  return state_->at("weights", group).weights();
}

const sparse::Csr<float>& RankLayer::columns(std::int64_t group) const {
  const GridPart& part = state_->at("columns", group);
  if (!state_->problem.grad_a) refuse("columns: the problem has no GradA");
  return part.transpose();
}

verify::Rounding RankLayer::rounding(Pass pass) const {
  state_->require_weights("rounding");
  verify::Rounding most = state_->groups[0]->rounding(pass);
  for (const auto& group : state_->groups)
    most.partials = std::max(most.partials, group->rounding(pass).partials);
  if (pass == Pass::GradW) most.partials += state_->cut.leaves;
  return most;
}

std::int64_t RankLayer::values() const {
  state_->require_weights("values");
  return state_->values.back().end;
}

std::int64_t RankLayer::all_values() const {
  return state_->sum(std::mem_fn(&GridPart::all_values));
}

std::int64_t RankLayer::memory_bytes() const {
  return state_->sum(std::mem_fn(&GridPart::memory_bytes));
}

#define TESSERA_INSTANTIATE(T)                                                                \
  template bool RankLayer::forward(MatrixView<const T>, MatrixView<T>,                        \
                                   const host::ForwardOptions&, const verify::RunOptions&,    \
                                   PassTimes&);                                               \
  template bool RankLayer::grad_a(MatrixView<const T>, MatrixView<T>,                         \
                                  const host::GradAOptions<T>&, const verify::RunOptions&,    \
                                  PassTimes&);                                                \
  template bool RankLayer::grad_w(MatrixView<const T>, MatrixView<const T>, std::span<float>, \
                                  host::Accumulate, const verify::RunOptions&, PassTimes&)
TESSERA_INSTANTIATE(float);
TESSERA_INSTANTIATE(Half);
TESSERA_INSTANTIATE(BFloat16);
#undef TESSERA_INSTANTIATE

}  // namespace tessera::distributed
