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
#include <variant>

#include "tessera/base/float_mode.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/internal/unit.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::distributed {
namespace {

using internal::BatchPart;
using internal::Grid;
using internal::GridPart;
using internal::Place;
using internal::Unit;
using Matrices = std::span<const sparse::Csr<float>>;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::InvalidArgument, why); }

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class T>
MatrixView<T> rows_in(MatrixView<T> view, Range rows) {
  return view.sub(rows, {0, view.cols});
}

}  // namespace

struct RankLayer::State {
  Problem problem;
  internal::RankSetting setting;
  Communicator* ranks;
  Cut cut;

  // With weights:
  std::vector<std::unique_ptr<Unit>> units;
  std::vector<GroupPart> parts;
  std::vector<float> sums;  // gradients that are added to the caller's

  bool splits_batch() const { return cut.leaves > 0; }
  void require_weights(std::string_view call) const {
    if (units.empty()) refuse(fmt::format("{}: set_weights comes first", call));
  }
  Range ranks_of(std::int64_t group) const {
    return ranks_of_group(group, problem.size.g, ranks->size());
  }
  std::int64_t output_rows() const { return units.back()->outputs.end; }
  std::int64_t input_rows() const { return units.back()->inputs.end; }
  std::int64_t values() const { return units.back()->values.end; }
  Range batch() const {
    if (!splits_batch()) return {0, problem.size.z};
    return std::get<BatchPart>(units[0]->part).columns();
  }

  // Returns the sum of a number of all units.
  template <class Number>
  std::int64_t sum(const Number& number) const {
    std::int64_t sum = 0;
    for (const auto& unit : units) sum += std::visit(number, unit->part);
    return sum;
  }

  const GroupPart& part(std::string_view call, std::int64_t group) const {
    require_weights(call);
    for (const GroupPart& one : parts)
      if (one.group == group) return one;
    refuse(fmt::format("{}: rank {} has nothing of group {}", call, ranks->rank(), group));
  }
  Unit& unit(std::string_view call, std::int64_t group) const {
    const GroupPart& wanted = part(call, group);
    return *units[splits_batch() ? 0 : std::size_t(&wanted - parts.data())];
  }
  GridPart& grid_part(std::string_view call, std::int64_t group) const {
    Unit& of_group = unit(call, group);
    if (splits_batch())
      refuse(fmt::format("{}: a layer with {} has no rows of its own", call, to_string(cut)));
    return std::get<GridPart>(of_group.part);
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
    sparse::check(m);
  }

  std::unique_ptr<Unit> make_unit(std::int64_t group, const Grid& grid, sparse::Csr<float> own) {
    Problem one = problem;
    one.size.g = 1;
    return std::make_unique<Unit>(group, *ranks, ranks_of(group), setting, one, grid,
                                  std::move(own));
  }

  // Makes new units those of the layer.
  void take(std::vector<std::unique_ptr<Unit>> next) {
    std::vector<GroupPart> of_next;
    const Range x{0, problem.size.x}, y{0, problem.size.y};
    for (std::int64_t g = 0; splits_batch() && g < problem.size.g; ++g)
      of_next.push_back({g, x, y, x, y});
    for (const auto& unit : next)
      if (const auto* part = std::get_if<GridPart>(&unit->part)) {
        const Place& at = part->place();
        of_next.push_back({unit->group, at.outputs, at.inputs, at.rows, at.columns});
      }
    units = std::move(next);
    parts = std::move(of_next);
    place_units();
  }

  // Counts the rows and values of the units.
  void place_units() {
    const auto next = [](Range before, std::int64_t size) {
      return Range{before.end, before.end + size};
    };
    Range outputs, inputs, values;
    const std::int64_t groups = splits_batch() ? problem.size.g : 1;
    for (std::size_t u = 0; u < units.size(); ++u) {
      units[u]->outputs = outputs = next(outputs, groups * parts[u].outputs.size());
      units[u]->inputs = inputs = next(inputs, groups * parts[u].inputs.size());
      units[u]->values = values =
          next(values, std::visit([](const auto& part) { return part.values(); }, units[u]->part));
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

  // Calls body(unit, options, times) for each group, until it or a stop ends the pass.
  template <class Body>
  bool run_pass(const verify::RunOptions& run, PassTimes& times, const Body& body) {
    const double begin = seconds_now();
    const Traffic before = ranks->traffic();
    times = {};
    if (run.self_check != nullptr) *run.self_check = {};
    bool goes_on = true;
    for (std::size_t u = 0; goes_on && u < units.size(); ++u)
      goes_on = run_unit(*units[u], run, times.host, body);
    const Traffic& after = ranks->traffic();
    times.host.seconds = seconds_now() - begin;
    times.gather_seconds = after.wait_seconds - before.wait_seconds;
    times.received_bytes = after.received_bytes - before.received_bytes;
    return goes_on;
  }

  template <class Body>
  bool run_unit(Unit& unit, const verify::RunOptions& run, host::HostTimes& times,
                const Body& body) {
    // Ranks that all share the panels of a pass ask before each of them.
    const bool asks_inside = problem.size.g == 1 && cut.replicas == 1 && !splits_batch();
    if (!asks_inside && run.stop.stop_possible() &&
        any_rank(*ranks, "wishes to stop", run.stop.stop_requested()))
      return false;
    verify::Checksums checksums;
    verify::RunOptions of_unit = run;
    if (!asks_inside) of_unit.stop = {};
    if (run.self_check != nullptr) of_unit.self_check = &checksums;
    host::HostTimes seconds;
    bool finished = true;
    try {
      finished =
          std::visit([&](auto& part) { return body(unit, part, of_unit, seconds); }, unit.part);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::CheckFailed || asks_inside) throw;
      throw Error(error.code(),
                  fmt::format("group {} on rank {}: {}", unit.group, ranks->rank(), error.what()));
    }
    times += seconds;
    if (checksums.compared > 0) verify::add_part(checksums, *run.self_check);
    return finished;
  }
};

RankLayer::RankLayer(const Problem& problem, const host::HostCpu& cpu, Executor& executor,
                     Communicator& ranks, const Cut& cut)
    : state_(std::unique_ptr<State>(
          new State{problem, {cpu, &executor, cut.panels}, &ranks, cut, {}, {}, {}})) {
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

void RankLayer::set_weights(const sparse::Csr<float>& weights) { set_weights({&weights, 1}); }

void RankLayer::set_weights(std::span<const sparse::Csr<float>> weights) {
  State& s = *state_;
  if (std::ssize(weights) != s.problem.size.g)
    refuse(fmt::format("set_weights: there are {} matrices for {} groups", weights.size(),
                       s.problem.size.g));
  for (const sparse::Csr<float>& matrix : weights)
    s.check_matrix("set_weights", matrix, s.problem.size_in_blocks());
  require_same(*s.ranks, "set_weights", s.given(weights));
  std::vector<std::unique_ptr<Unit>> units;
  if (s.splits_batch()) {
    units.push_back(std::make_unique<Unit>(*s.ranks, s.setting, s.problem, s.cut.leaves, weights));
    return s.take(std::move(units));
  }
  // A matrix that cannot be cut is refused on all ranks, before any of them sends a part of one.
  std::vector<Grid> grids;
  for (std::size_t g = 0; g < weights.size(); ++g)
    grids.push_back(
        internal::grid_of(s.problem, s.cut, weights[g], int(s.ranks_of(std::int64_t(g)).size())));
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const Range of_group = s.ranks_of(std::int64_t(g));
    const std::int64_t rank = s.ranks->rank();
    if (rank < of_group.begin || rank >= of_group.end) continue;
    const Place place = grids[g].forward(int(rank - of_group.begin));
    units.push_back(
        s.make_unit(std::int64_t(g), grids[g], internal::part_of(weights[g], grids[g], place)));
  }
  s.take(std::move(units));
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
  std::vector<Given> given = s.given({});
  given.push_back(given_cut("cut of the outputs", rows));
  require_same(*s.ranks, "set_rows", given);
  Grid grid{.rows = rows, .cols = {}, .replicas = 1};
  grid.cols = s.cut.cols ? *s.cut.cols
                         : cut_evenly(sums_of_ranks(*s.ranks, "numbers of blocks of the columns",
                                                    internal::column_counts(own)),
                                      size.y, s.problem.block.cols, s.ranks->size());
  std::vector<std::unique_ptr<Unit>> units;
  units.push_back(s.make_unit(0, grid, std::move(own)));
  s.take(std::move(units));
}

void RankLayer::update_weights(const sparse::PatternChange& change, std::int64_t group) {
  Unit& unit = state_->unit("update_weights", group);
  std::visit([&](auto& part) { part.update_weights(change, group); }, unit.part);
  state_->place_units();
}

void RankLayer::set_values(std::span<const float> values, std::int64_t group) {
  Unit& unit = state_->unit("set_values", group);
  if (values.size() != weights(group).values.size())
    refuse(fmt::format("set_values: there are {} values; rank {} has {} of group {}", values.size(),
                       state_->ranks->rank(), weights(group).values.size(), group));
  std::visit([&](auto& part) { part.set_values(values, group); }, unit.part);
}

void RankLayer::change_parts(const host::ChangePart& change, std::int64_t group) {
  Unit& unit = state_->unit("change_values", group);
  std::visit([&](auto& part) { part.change_values(change, group); }, unit.part);
}

template <class T>
bool RankLayer::forward(MatrixView<const T> s, MatrixView<T> q, const host::ForwardOptions& after,
                        const verify::RunOptions& options, PassTimes& times) {
  const DefaultFloatMode mode;
  State& state = *state_;
  state.require_weights("forward");
  state.check_operand("forward", "s", s, state.input_rows(), s.cols);
  state.check_operand("forward", "q", q, state.output_rows(), s.cols);
  if (!after.bias.empty() && std::ssize(after.bias) != q.rows)
    refuse(fmt::format("forward: the bias has {} numbers; rank {} has {} rows of Q",
                       after.bias.size(), state.ranks->rank(), q.rows));
  check_no_overlap("forward", footprint("q", q),
                   std::array{footprint("s", s), footprint("bias", after.bias)});
  return state.run_pass(
      options, times, [&](const Unit& unit, auto& part, const auto& run, auto& seconds) {
        host::ForwardOptions of_unit = after;
        if (!after.bias.empty())
          of_unit.bias =
              after.bias.subspan(std::size_t(unit.outputs.begin), std::size_t(unit.outputs.size()));
        return part.template forward<T>(rows_in(s, unit.inputs), rows_in(q, unit.outputs), of_unit,
                                        run, seconds);
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
  state.check_operand("grad_a", "q_grad", q_grad, state.output_rows(), q_grad.cols);
  state.check_operand("grad_a", "s_grad", s_grad, state.input_rows(), q_grad.cols);
  const MatrixView<const T> mask = after.where_positive;
  if (mask.data != nullptr)
    state.check_operand("grad_a", "where_positive", mask, state.input_rows(), q_grad.cols);
  check_no_overlap("grad_a", footprint("s_grad", s_grad),
                   std::array{footprint("q_grad", q_grad), footprint("where_positive", mask)});
  const bool finished = state.run_pass(
      options, times, [&](const Unit& unit, auto& part, const auto& run, auto& seconds) {
        return part.template grad_a<T>(rows_in(q_grad, unit.outputs), rows_in(s_grad, unit.inputs),
                                       run, seconds);
      });
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
  state.check_operand("grad_w", "q_grad", q_grad, state.output_rows(), s.cols);
  state.check_operand("grad_w", "s", s, state.input_rows(), s.cols);
  if (std::ssize(gradients) != values())
    refuse(fmt::format("grad_w: there are {} gradients for {} values", std::ssize(gradients),
                       values()));
  check_no_overlap("grad_w", footprint("gradients", gradients),
                   std::array{footprint("q_grad", q_grad), footprint("s", s)});
  // The gradients of the whole batch are summed before they are added to the caller's.
  const bool adds = accumulate == host::Accumulate::Yes;
  if (adds) state.sums.resize(gradients.size());
  const std::span<float> sums = adds ? std::span<float>(state.sums) : gradients;
  const bool finished = state.run_pass(
      options, times, [&](const Unit& unit, auto& part, const auto& run, auto& seconds) {
        return part.template grad_w<T>(
            rows_in(q_grad, unit.outputs), rows_in(s, unit.inputs),
            sums.subspan(std::size_t(unit.values.begin), std::size_t(unit.values.size())), run,
            seconds);
      });
  if (adds && finished)
    std::transform(sums.begin(), sums.end(), gradients.begin(), gradients.begin(), std::plus<>());
  return finished;
}

const Problem& RankLayer::problem() const { return state_->problem; }

Cut RankLayer::cut(std::int64_t group) const {
  Cut cut = state_->cut;
  if (state_->units.empty() || state_->splits_batch()) return cut;
  const Grid& grid = state_->grid_part("cut", group).grid();
  cut.rows = grid.rows;
  cut.cols = grid.cols;
  return cut;
}

std::span<const GroupPart> RankLayer::parts() const {
  state_->require_weights("parts");
  return state_->parts;
}

Range RankLayer::batch() const {
  state_->require_weights("batch");
  return state_->batch();
}

Range RankLayer::outputs(std::int64_t group) const {
  return state_->part("outputs", group).outputs;
}

Range RankLayer::inputs(std::int64_t group) const { return state_->part("inputs", group).inputs; }

std::int64_t RankLayer::output_rows() const {
  state_->require_weights("output_rows");
  return state_->output_rows();
}

std::int64_t RankLayer::input_rows() const {
  state_->require_weights("input_rows");
  return state_->input_rows();
}

const sparse::Csr<float>& RankLayer::weights(std::int64_t group) const {
  const Unit& unit = state_->unit("weights", group);
  return std::visit(
      [&](const auto& part) -> const sparse::Csr<float>& { return part.weights(group); },
      unit.part);
}

const sparse::Csr<float>& RankLayer::columns(std::int64_t group) const {
  const GridPart& part = state_->grid_part("columns", group);
  if (!state_->problem.grad_a) refuse("columns: the problem has no GradA");
  return part.transpose();
}

verify::Rounding RankLayer::rounding(Pass pass) const {
  state_->require_weights("rounding");
  verify::Rounding most;
  for (const auto& unit : state_->units) {
    const auto one = std::visit([&](const auto& part) { return part.rounding(pass); }, unit->part);
    if (unit == state_->units[0] || one.partials > most.partials) most = one;
  }
  return most;
}

std::int64_t RankLayer::values() const {
  state_->require_weights("values");
  return state_->values();
}

std::int64_t RankLayer::all_values() const {
  return state_->sum([](const auto& part) { return part.all_values(); });
}

std::int64_t RankLayer::memory_bytes() const {
  return state_->sum([](const auto& part) { return part.memory_bytes(); });
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
