#include "tessera/distributed/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/float_mode.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/internal/columns.hpp"
#include "tessera/distributed/internal/panels.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cost.hpp"
#include "tessera/host/layer.hpp"

namespace tessera::distributed {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::InvalidArgument, why); }

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The panels of a pass, two at a time.
template <class T>
using PanelMemory = std::array<AlignedVector<T>, 2>;

// Columns of the widest panel of a product. On the computers of bench/results/distributed.md wider
// ones hide less of the copies.
constexpr std::int64_t kWidestPanel = 64;

}  // namespace

struct DistributedLayer::State {
  Problem problem;
  host::HostCpu cpu;
  Executor* executor;
  Communicator* ranks;
  LayerOptions options;
  RowCut outputs, inputs;
  std::int64_t all_values = 0;
  bool has_weights = false;

  // The products of this rank. A rank without rows or without columns has none.
  std::optional<host::HostLayer> rows, columns;
  std::vector<std::int32_t> order;  // received_order of the columns
  std::vector<float> received;      // values of the columns
  std::tuple<PanelMemory<float>, PanelMemory<Half>, PanelMemory<BFloat16>> memory;
  std::vector<float> sums;  // gradients of several panels that are added to the caller's
  sparse::Csr<float> no_rows, no_columns;  // of a rank without them

  const sparse::Csr<float>& weights() const { return rows ? rows->weights() : no_rows; }
  Range own(const RowCut& cut) const { return cut.of(ranks->rank()); }

  void require_weights(const char* call) const {
    if (!has_weights) refuse(fmt::format("{}: set_weights comes first", call));
  }

  template <class T>
  void check_operand(const char* call, const char* name, MatrixView<T> view, const RowCut& cut,
                     std::int64_t cols) const {
    using Element = std::remove_const_t<T>;
    require_weights(call);
    if (data_type_of<Element>() != problem.data_type)
      refuse(fmt::format("{}: {} has another type than the layer", call, name));
    if (view.rows == own(cut).size() && view.cols == cols) return;
    refuse(fmt::format("{}: {} is {} x {}, but rank {} has {} x {} of it", call, name, view.rows,
                       view.cols, ranks->rank(), own(cut).size(), cols));
  }

  // A pass over the gathered panels of an operand, which is cut among the ranks by `cut`.
  struct Gathering {
    Pass pass = Pass::Fwd;
    std::string_view what;  // travels
    const RowCut& cut;
    host::HostColumns columns;  // of the panels of HostLayer
    std::int64_t widest = 0;
  };

  // Calls body(panel, columns, options of the panel, times) for all panels, until it or a stop ends
  // the pass. Returns true if nothing did.
  template <class T, class Body>
  bool for_each_panel(const Gathering& of, MatrixView<const T> own_rows,
                      const verify::RunOptions& run, PassTimes& times, const Body& body) {
    const double begin = seconds_now();
    const Traffic before = ranks->traffic();
    times = {};
    if (run.self_check != nullptr) *run.self_check = {};
    const std::int64_t z = own_rows.cols;
    bool goes_on = true;
    if (ranks->size() == 1) {
      goes_on = run_panel(of, {0, z}, 0, own_rows, run, times, body);
    } else {
      const host::HostColumns cut = options.panels ? of.columns : host::HostColumns{z, z, false};
      internal::GatheredPanels<T> panels(
          *ranks, *executor, of.cut, std::get<PanelMemory<T>>(memory), of.what, own_rows,
          internal::panel_ranges(z, cut.width, options.panels ? of.widest : z), cut.stride,
          run.self_check != nullptr);
      for (std::int64_t panel = 0; goes_on && panel < panels.count(); ++panel) {
        const MatrixView<const T> rows_of_all = panels.next();
        goes_on = run_panel(of, panels.columns(panel), panel, rows_of_all, run, times, body);
      }
      panels.end();
    }
    times.host.seconds = seconds_now() - begin;
    times.gather_seconds = ranks->traffic().wait_seconds - before.wait_seconds;
    times.received_bytes = ranks->traffic().received_bytes - before.received_bytes;
    return goes_on;
  }

  template <class T, class Body>
  bool run_panel(const Gathering& of, Range columns_of_z, std::int64_t begun,
                 MatrixView<const T> panel, const verify::RunOptions& run, PassTimes& times,
                 const Body& body) {
    if (is_stopped(run)) return false;
    if (run.progress) run.progress({of.what, begun});
    verify::Checksums checksums;
    const verify::RunOptions of_panel{.self_check = run.self_check ? &checksums : nullptr,
                                      .repair = run.repair};
    host::HostTimes seconds;
    try {
      [[maybe_unused]] const bool finished = body(panel, columns_of_z, of_panel, seconds);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::CheckFailed) throw;
      throw Error(
          error.code(),
          fmt::format("{} of columns {} to {} on rank {}{}: {}", to_string(of.pass),
                      columns_of_z.begin, columns_of_z.end, ranks->rank(),
                      of.pass == Pass::GradA ? ", as Fwd of R transposed" : "", error.what()));
    }
    times.host += seconds;
    if (run.self_check != nullptr && checksums.compared > 0)
      verify::add_part(checksums, *run.self_check);
    return true;
  }

  // True if any rank wants to stop.
  bool is_stopped(const verify::RunOptions& run) const {
    if (!run.stop.stop_possible()) return false;
    bool stopped = false;
    for (const auto& list :
         gather_lists(*ranks, "wishes to stop", std::vector<char>{run.stop.stop_requested()}))
      stopped = stopped || list[0] != 0;
    return stopped;
  }

  // The panels of HostLayer for the whole layer, or for its transpose.
  host::HostProblem whole(bool transposed) const {
    const Dims size = problem.size_in_blocks();
    host::HostProblem of{size, problem.block, all_values / problem.block.area(), problem.data_type};
    if (transposed) {
      std::swap(of.size.x, of.size.y);
      of.block = of.block.transposed();
    }
    return of;
  }
  host::HostColumns product_panels(bool transposed, std::int64_t z) const {
    const host::HostProblem of = whole(transposed);
    host::HostColumns panels = product_columns(product_cells(of, cpu), of, z, cpu);
    if (!of.block.is_element()) panels.stride = std::min(panels.width, kWidestPanel);
    return panels;
  }

  void set_columns() {
    const Range own_inputs = own(inputs);
    sparse::Csr<float> transpose = internal::exchange_columns(*ranks, inputs, weights());
    order = internal::received_order(transpose);
    columns.reset();
    no_columns = {};
    if (own_inputs.size() == 0) {
      no_columns = std::move(transpose);
      return;
    }
    const Dims size = problem.size;
    columns.emplace(Problem{.size = {1, own_inputs.size(), size.x, size.z},
                            .block = problem.block.transposed(),
                            .density = problem.density,
                            .data_type = problem.data_type},
                    cpu, *executor);
    columns->set_weights(transpose);
  }

  void send_values() {
    if (!problem.grad_a) return;
    internal::exchange_values(*ranks, inputs, weights(), order, received);
    if (columns) columns->set_values(received);
  }
};

DistributedLayer::DistributedLayer(const Problem& problem, const host::HostCpu& cpu,
                                   Executor& executor, Communicator& ranks,
                                   const LayerOptions& options)
    : state_(std::unique_ptr<State>(new State{problem, cpu, &executor, &ranks, options})) {
  check_problem(problem);
  if (problem.size.g != 1)
    refuse(fmt::format("a DistributedLayer has one group, not {}; GroupedLayer has several",
                       problem.size.g));
  if (options.outputs) check(*options.outputs, problem.size.x, problem.block.rows, ranks.size());
  if (options.inputs) check(*options.inputs, problem.size.y, problem.block.cols, ranks.size());
}

DistributedLayer::~DistributedLayer() = default;
DistributedLayer::DistributedLayer(DistributedLayer&&) noexcept = default;
DistributedLayer& DistributedLayer::operator=(DistributedLayer&&) noexcept = default;

void DistributedLayer::set_weights(const sparse::Csr<float>& weights) {
  const Problem& problem = state_->problem;
  const Dims size = problem.size_in_blocks();
  if (weights.rows != size.x || weights.cols != size.y || weights.block != problem.block)
    refuse(
        fmt::format("set_weights: the matrix is {} x {} in blocks of {} x {}, the layer is {} x "
                    "{} in blocks of {} x {}",
                    weights.rows, weights.cols, weights.block.rows, weights.block.cols, size.x,
                    size.y, problem.block.rows, problem.block.cols));
  require_same(*state_->ranks, "set_weights",
               {given_problem(problem), given_weights({&weights, 1})});
  RowCut outputs;
  if (state_->options.outputs) {
    outputs = *state_->options.outputs;
  } else {
    std::vector<std::int64_t> counts(std::size_t(weights.block_rows()));
    for (std::size_t row = 0; row < counts.size(); ++row)
      counts[row] = weights.row_begin[row + 1] - weights.row_begin[row];
    outputs = cut_evenly(counts, problem.size.x, problem.block.rows, state_->ranks->size());
  }
  const Range own = outputs.of(state_->ranks->rank());
  set_rows(outputs, rows_of(weights, own));
}

void DistributedLayer::set_rows(const RowCut& outputs, sparse::Csr<float> rows) {
  State& s = *state_;
  const Dims size = s.problem.size, padded = s.problem.size_in_blocks();
  check(outputs, size.x, s.problem.block.rows, s.ranks->size());
  const Range own = outputs.of(s.ranks->rank());
  if (rows.rows != round_up(own.size(), s.problem.block.rows) || rows.cols != padded.y ||
      rows.block != s.problem.block)
    refuse(
        fmt::format("set_rows: the matrix is {} x {}, but rank {} has {} rows of {} columns, in "
                    "blocks of {} x {}",
                    rows.rows, rows.cols, s.ranks->rank(), own.size(), padded.y,
                    s.problem.block.rows, s.problem.block.cols));
  require_same(
      *s.ranks, "set_rows",
      {given_problem(s.problem), given_caches(s.cpu), given_cut("cut of the outputs", outputs),
       given_cut("cut of the inputs", s.options.inputs.value_or(RowCut()))});
  s.has_weights = false;
  s.outputs = outputs;
  s.rows.reset();
  if (own.size() == 0) {
    s.no_rows = std::move(rows);
  } else {
    Problem problem = s.problem;
    problem.size.x = own.size();
    problem.grad_a = false;
    s.rows.emplace(problem, s.cpu, *s.executor);
    s.rows->set_weights(rows);
  }
  const auto counts = internal::column_counts(*s.ranks, s.weights());
  s.all_values =
      std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) * s.problem.block.area();
  s.inputs = s.options.inputs ? *s.options.inputs
                              : cut_evenly(counts, size.y, s.problem.block.cols, s.ranks->size());
  if (s.problem.grad_a) s.set_columns();
  s.has_weights = true;
}

void DistributedLayer::update_weights(const sparse::PatternChange& change) {
  State& s = *state_;
  s.require_weights("update_weights");
  if (s.rows)
    s.rows->update_weights(change);
  else if (!change.removed.empty() || !change.added.empty())
    refuse(fmt::format("update_weights: rank {} has no rows to change", s.ranks->rank()));
  std::vector<std::int64_t> difference{std::ssize(change.added) - std::ssize(change.removed)};
  for (const auto& list : gather_lists(*s.ranks, "number of changed weights", difference))
    s.all_values += list[0] * s.problem.block.area();
  if (!s.problem.grad_a) return;
  const sparse::PatternChange of_columns = internal::exchange_change(
      *s.ranks, s.inputs, s.problem.block, s.own(s.outputs).begin / s.problem.block.rows, change);
  if (!s.columns) return;
  s.columns->update_weights(of_columns);
  s.order = internal::received_order(s.columns->weights());
}

void DistributedLayer::set_values(std::span<const float> values) {
  state_->require_weights("set_values");
  if (state_->rows)
    state_->rows->set_values(values);
  else if (!values.empty())
    refuse("set_values: this rank has no values");
  state_->send_values();
}

void DistributedLayer::change_parts(const host::ChangePart& change) {
  state_->require_weights("change_values");
  if (state_->rows) state_->rows->change_values(change);
  state_->send_values();
}

template <class T>
bool DistributedLayer::forward(MatrixView<const T> s, MatrixView<T> q,
                               const host::ForwardOptions& after, const verify::RunOptions& options,
                               PassTimes& times) {
  State& state = *state_;
  state.check_operand("forward", "s", s, state.inputs, s.cols);
  state.check_operand("forward", "q", q, state.outputs, s.cols);
  const Footprint operands[] = {footprint("s", s), footprint("bias", after.bias)};
  check_no_overlap("forward", footprint("q", q), operands);
  return state.for_each_panel<T>(
      {Pass::Fwd, "Fwd: rows of S", state.inputs, state.product_panels(false, s.cols),
       kWidestPanel},
      s, options, times,
      [&](MatrixView<const T> panel, Range columns, const auto& of_panel, auto& seconds) {
        return !state.rows || state.rows->forward<T>(panel, q.sub({0, q.rows}, columns),
                                                     layer::of_run(of_panel, after), seconds);
      });
}

template <class T>
bool DistributedLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                              const host::GradAOptions<T>& after, const verify::RunOptions& options,
                              PassTimes& times) {
  const DefaultFloatMode mode;
  State& state = *state_;
  state.check_operand("grad_a", "q_grad", q_grad, state.outputs, q_grad.cols);
  state.check_operand("grad_a", "s_grad", s_grad, state.inputs, q_grad.cols);
  const auto mask = after.where_positive.template as<T>();
  if (mask.data != nullptr)
    state.check_operand("grad_a", "where_positive", mask, state.inputs, q_grad.cols);
  if (!state.problem.grad_a) refuse("grad_a: the problem has no GradA");
  const Footprint operands[] = {footprint("q_grad", q_grad), footprint("where_positive", mask)};
  check_no_overlap("grad_a", footprint("s_grad", s_grad), operands);
  return state.for_each_panel<T>(
      {Pass::GradA, "GradA: rows of dQ", state.outputs, state.product_panels(true, q_grad.cols),
       kWidestPanel},
      q_grad, options, times,
      [&](MatrixView<const T> panel, Range columns, const auto& of_panel, auto& seconds) {
        if (!state.columns) return true;
        const bool finished = state.columns->forward<T>(
            panel, s_grad.sub({0, s_grad.rows}, columns), layer::of_run(of_panel), seconds);
        if (mask.data == nullptr) return finished;
        for (std::int64_t r = 0; r < s_grad.rows; ++r)
          for (std::int64_t c = columns.begin; c < columns.end; ++c)
            if (!(float(mask(r, c)) > 0)) s_grad(r, c) = T(0.0f);
        return finished;
      });
}

template <class T>
bool DistributedLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                              std::span<float> gradients, host::Accumulate accumulate,
                              const verify::RunOptions& options, PassTimes& times) {
  const DefaultFloatMode mode;
  State& state = *state_;
  state.check_operand("grad_w", "q_grad", q_grad, state.outputs, s.cols);
  state.check_operand("grad_w", "s", s, state.inputs, s.cols);
  if (!state.problem.grad_w) refuse("grad_w: the problem has no GradW");
  if (std::ssize(gradients) != values())
    refuse(fmt::format("grad_w: there are {} gradients for {} values", std::ssize(gradients),
                       values()));
  const host::HostColumns panels =
      gradient_columns(gradient_cells(state.whole(false), state.cpu), s.cols);
  const Footprint operands[] = {footprint("q_grad", q_grad), footprint("s", s)};
  check_no_overlap("grad_w", footprint("gradients", gradients), operands);
  // Panels are summed before they are added to the caller's gradients, as on one rank.
  const bool adds = accumulate == host::Accumulate::Yes && s.cols > panels.width;
  if (adds) state.sums.resize(gradients.size());
  const std::span<float> sums = adds ? std::span<float>(state.sums) : gradients;
  if (!adds && accumulate == host::Accumulate::No && s.cols == 0)
    std::fill(gradients.begin(), gradients.end(), 0.0f);
  const bool finished = state.for_each_panel<T>(
      {Pass::GradW, "GradW: rows of S", state.inputs, panels, panels.width}, s, options, times,
      [&](MatrixView<const T> panel, Range columns, const auto& of_panel, auto& seconds) {
        if (!state.rows) return true;
        const host::Accumulate how = columns.begin > 0 ? host::Accumulate::Yes
                                     : adds            ? host::Accumulate::No
                                                       : accumulate;
        return state.rows->grad_w<T>(q_grad.sub({0, q_grad.rows}, columns), panel, sums,
                                     layer::of_run(of_panel, {.accumulate = how}), seconds);
      });
  if (adds && finished)
    std::transform(sums.begin(), sums.end(), gradients.begin(), gradients.begin(), std::plus<>());
  return finished;
}

template <class T>
PassTimes DistributedLayer::forward(MatrixView<const T> s, MatrixView<T> q,
                                    const host::ForwardOptions& after) {
  PassTimes times;
  [[maybe_unused]] const bool finished = forward<T>(s, q, after, {}, times);
  return times;
}

template <class T>
PassTimes DistributedLayer::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                                   const host::GradAOptions<T>& after) {
  PassTimes times;
  [[maybe_unused]] const bool finished = grad_a<T>(q_grad, s_grad, after, {}, times);
  return times;
}

template <class T>
PassTimes DistributedLayer::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                   std::span<float> gradients, host::Accumulate accumulate) {
  PassTimes times;
  [[maybe_unused]] const bool finished = grad_w<T>(q_grad, s, gradients, accumulate, {}, times);
  return times;
}

const Problem& DistributedLayer::problem() const { return state_->problem; }

const RowCut& DistributedLayer::outputs() const {
  state_->require_weights("outputs");
  return state_->outputs;
}

const RowCut& DistributedLayer::inputs() const {
  state_->require_weights("inputs");
  return state_->inputs;
}

const sparse::Csr<float>& DistributedLayer::weights() const {
  state_->require_weights("weights");
  return state_->weights();
}

const sparse::Csr<float>& DistributedLayer::columns() const {
  state_->require_weights("columns");
  if (!state_->problem.grad_a) refuse("columns: the problem has no GradA");
  return state_->columns ? state_->columns->weights() : state_->no_columns;
}

// Sums are those of one process, so their number of terms is that of its cells.
verify::Rounding DistributedLayer::rounding(Pass pass) const {
  const State& s = *state_;
  s.require_weights("rounding");
  const host::HostCells cut = host::cells_of(pass, s.whole(false), s.cpu);
  constexpr std::int64_t kLanes = 16;  // of the widest vectors
  const Dims size = s.problem.size;
  if (pass == Pass::GradW)
    return {DataType::Float, DataType::Float,
            kLanes + ceil_div(size.z, gradient_columns(cut, size.z).width)};
  return {s.problem.data_type, DataType::Float,
          ceil_div(pass == Pass::Fwd ? size.y : size.x, cut.y) + 1};
}

std::int64_t DistributedLayer::values() const { return std::ssize(state_->weights().values); }
std::int64_t DistributedLayer::all_values() const { return state_->all_values; }

std::int64_t DistributedLayer::memory_bytes() const {
  std::int64_t bytes = std::ssize(state_->order) * 4 + std::ssize(state_->received) * 4;
  if (state_->rows) bytes += state_->rows->memory_bytes();
  if (state_->columns) bytes += state_->columns->memory_bytes();
  return bytes;
}

#define TESSERA_INSTANTIATE(T)                                                                    \
  template PassTimes DistributedLayer::forward(MatrixView<const T>, MatrixView<T>,                \
                                               const host::ForwardOptions&);                      \
  template PassTimes DistributedLayer::grad_a(MatrixView<const T>, MatrixView<T>,                 \
                                              const host::GradAOptions<T>&);                      \
  template PassTimes DistributedLayer::grad_w(MatrixView<const T>, MatrixView<const T>,           \
                                              std::span<float>, host::Accumulate);                \
  template bool DistributedLayer::forward(MatrixView<const T>, MatrixView<T>,                     \
                                          const host::ForwardOptions&, const verify::RunOptions&, \
                                          PassTimes&);                                            \
  template bool DistributedLayer::grad_a(MatrixView<const T>, MatrixView<T>,                      \
                                         const host::GradAOptions<T>&, const verify::RunOptions&, \
                                         PassTimes&);                                             \
  template bool DistributedLayer::grad_w(MatrixView<const T>, MatrixView<const T>,                \
                                         std::span<float>, host::Accumulate,                      \
                                         const verify::RunOptions&, PassTimes&)
TESSERA_INSTANTIATE(float);
TESSERA_INSTANTIATE(Half);
TESSERA_INSTANTIATE(BFloat16);
#undef TESSERA_INSTANTIATE

}  // namespace tessera::distributed
