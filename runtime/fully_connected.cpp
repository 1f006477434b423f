#include "tessera/runtime/fully_connected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/dense_pass.hpp"
#include "tessera/runtime/grad_w_pass.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/runtime/internal/padded.hpp"
#include "tessera/runtime/internal/rehome.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::inline v0::runtime {

partitioner::TileGrid tile_grid(const planner::Problem& problem, const planner::Plan& plan,
                                const device::Machine& machine) {
  Dims grains = ceil_div(problem.size_in_blocks(), plan.grain);
  grains.z = round_up(grains.z, plan.partition.z);  // equal z on every tile
  const Dims padded = grains * plan.grain, parts = plan.partition;
  return {.size = {1, padded.x, padded.y, padded.z},
          .block = plan.block,
          .z_grain = plan.grain.z,
          .splits = {1, parts.x, parts.y, parts.z},
          .data_type = problem.data_type,
          .workers = machine.workers,
          .word_bits = machine.word_bits,
          .grad_w = problem.grad_w,
          .separate_grad_a = problem.grad_a && !plan.shared_buckets(),
          .meta_words = plan.fwd_meta_words.value,
          .grad_a_words = plan.grad_a_meta_words.value,
          .blocks = plan.blocks_per_bucket()};
}

struct FullyConnected::State {
  planner::Problem problem;
  partitioner::TileGrid grid;  // of one group
  internal::LayerWeights weights;
  std::optional<DensePass> fwd, grad_a;
  std::optional<GradWPass> grad_w;
  // GradA's own layout: transpose(R), whose Fwd is GradA. It may run GradW too.
  std::unique_ptr<FullyConnected> backward;
  device::Machine machine;
  // Kept from call to call: operands in the program's size, by side, and gradients in bucket order.
  std::array<std::vector<std::byte>, 2> copies;
  std::vector<std::byte> in_order;

  bool turns_grad_w() const { return backward && backward->state_->grad_w.has_value(); }
  std::span<const partitioner::Buckets> bucket_groups() const { return weights.image().groups; }
  // of_dense(pass) or of_grad_w(pass), whichever runs this pass.
  template <class OfDense, class OfGradW>
  auto ask(planner::Pass pass, OfDense of_dense, OfGradW of_grad_w) const;
  Bytes bucket_bytes() const;
  void check_memory() const;
  device::Ledger rehome() const;
  // Gives the other layout the same weights; a misfit leaves it with those it had.
  std::optional<partitioner::Misfit> turn_weights(std::span<const sparse::Csr<float>> given,
                                                  const partitioner::EncodeOptions& options);

  template <class T>
  void check_call(bool has_pass, const char* pass) const {
    if (data_type_of<T>() != problem.data_type)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: operands are {} but the layer is {}", pass,
                              to_string(data_type_of<T>()), to_string(problem.data_type)));
    if (!has_pass)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: the layer was planned without this pass", pass));
    if (weights.empty())
      throw Error(ErrorCode::InvalidArgument, fmt::format("{}: call set_weights first", pass));
  }
  template <class T>
  void check_operand(const char* name, MatrixView<T> view, std::int64_t Dims::*side) const;
  // Operands of x or y rows a group: as they come, and as programs want them.
  template <class T>
  internal::Padded<T> operand(const char* name, MatrixView<T> view, std::int64_t Dims::*side);
  template <class T>
  bool run(DensePass& pass, internal::Padded<const T> in, internal::Padded<T> out,
           const RunOptions& options, device::Ledger& ledger) const;
  Rounding rounding(planner::Pass pass) const;
  // Of a dense result, where the options ask for it.
  template <class T>
  void check(planner::Pass pass, MatrixView<const T> in, MatrixView<const T> out,
             const RunOptions& options) const;
  template <class T>
  bool run_grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                  std::span<sparse::Csr<float>> gradients, const RunOptions& options,
                  device::Ledger& ledger);
};

// Cells whose partial sums add up to a result.
Rounding FullyConnected::State::rounding(planner::Pass pass) const {
  const Dims& splits = grid.splits;
  const std::int64_t partials = pass == planner::Pass::Fwd     ? splits.y
                                : pass == planner::Pass::GradA ? splits.x
                                                               : splits.z;
  return {problem.data_type, problem.partials_type, partials};
}

template <class T>
void FullyConnected::State::check(planner::Pass pass, MatrixView<const T> in,
                                  MatrixView<const T> out, const RunOptions& options) const {
  if (options.self_check == nullptr) return;
  internal::check_layer_product<T>(pass, weights, in, out, rounding(pass), *options.self_check);
}

template <class T>
void FullyConnected::State::check_operand(const char* name, MatrixView<T> view,
                                          std::int64_t Dims::*side) const {
  const std::int64_t rows = problem.size.g * problem.size.*side;
  if (view.rows != rows || view.cols != problem.size.z)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is {} x {}; this layer needs {} x {}", name, view.rows, view.cols,
                            rows, problem.size.z));
}

template <class T>
internal::Padded<T> FullyConnected::State::operand(const char* name, MatrixView<T> view,
                                                   std::int64_t Dims::*side) {
  check_operand(name, view, side);
  return {view, problem.size.g, grid.size.*side, grid.size.z, copies[side == &Dims::x ? 0 : 1]};
}

template <class T>
bool FullyConnected::State::run(DensePass& pass, internal::Padded<const T> in,
                                internal::Padded<T> out, const RunOptions& options,
                                device::Ledger& ledger) const {
  in.read();
  if (!pass.run(weights.image(), in.bytes(), out.bytes(), options, ledger)) return false;
  out.write_back();
  return true;
}

template <class T>
bool FullyConnected::State::run_grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                       std::span<sparse::Csr<float>> gradients,
                                       const RunOptions& options, device::Ledger& ledger) {
  const std::int64_t groups = problem.size.g;
  if (std::ssize(gradients) != groups)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} gradients are asked for; this layer has one for each of its {} "
                            "groups",
                            gradients.size(), groups));
  auto q_in = operand("q_grad", q_grad, &Dims::x), s_in = operand("s", s, &Dims::y);
  q_in.read();
  s_in.read();
  const BucketImage image = weights.image();
  const std::size_t values =
      std::size_t(groups * grid.buckets()) * std::size_t(image.groups[0].values_per_bucket());
  in_order.resize(values * sizeof(T));
  if (!grad_w->run(image, {q_in.bytes(), s_in.bytes(), in_order.data()}, options, ledger))
    return false;
  const std::span<const T> in_bucket_order(reinterpret_cast<const T*>(in_order.data()), values);
  for (std::int64_t g = 0; g < groups; ++g)
    weights.to_given<T>(in_bucket_order, g, gradients[std::size_t(g)]);
  if (options.self_check != nullptr)
    internal::check_layer_gradient<T>(gradients, q_grad, s, rounding(planner::Pass::GradW),
                                      *options.self_check);
  return true;
}

namespace {

using planner::Pass;

PassSpec spec_of(const planner::Problem& problem, const planner::Plan& plan,
                 const partitioner::TileGrid& grid, Pass pass) {
  const auto method = pass == Pass::Fwd     ? plan.fwd
                      : pass == Pass::GradA ? plan.grad_a
                                            : plan.grad_w;
  return {grid, problem.size.g, method, problem.partials_type};
}

GradWExchange grad_w_exchange(const planner::Plan& plan) {
  return plan.grad_w_exchange_buckets ? GradWExchange::Buckets : GradWExchange::Inputs;
}

// A misfit of GradA's own layout counts cells and tiles of the transpose.
partitioner::Misfit turned_name(partitioner::Misfit misfit) {
  misfit.message = "in GradA's own layout, where x and y have changed over: " + misfit.message;
  return misfit;
}

}  // namespace

Bytes FullyConnected::State::bucket_bytes() const {
  const std::int64_t words = grid.meta_words + grid.grad_a_words;
  return Bytes(words * grid.word_bits / 8 +
               grid.blocks * grid.block.area() * bytes_of(grid.data_type));
}

// Both layouts' buckets lie on a tile all the time.
void FullyConnected::State::check_memory() const {
  const State& other = *backward->state_;
  const auto high = [](const State& s) {
    return std::max(s.fwd->high_water(), s.grad_w ? s.grad_w->high_water() : Bytes());
  };
  const Bytes most = std::max(high(*this) + other.bucket_bytes(), high(other) + bucket_bytes());
  if (most > machine.tile_memory)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("a tile needs {} bytes with the buckets of both layouts but {} has {} "
                            "a tile; plan with perPassPlans false",
                            most.value, machine.name, machine.tile_memory.value));
}

device::Ledger FullyConnected::State::rehome() const {
  return {internal::rehome_steps(bucket_groups(), backward->state_->bucket_groups(), machine)};
}

std::optional<partitioner::Misfit> FullyConnected::State::turn_weights(
    std::span<const sparse::Csr<float>> given, const partitioner::EncodeOptions& options) {
  std::vector<sparse::Csr<float>> turned;
  for (const sparse::Csr<float>& matrix : given) turned.push_back(sparse::transpose(matrix));
  return backward->set_weights(turned, options);
}

FullyConnected::FullyConnected(const planner::Problem& problem, const planner::Plan& plan,
                               const device::Machine& machine, device::ExchangeMode mode,
                               Executor& executor) {
  planner::check_problem(problem);
  if (!plan.backward.empty()) {
    const auto [here, there] =
        planner::two_problems(problem, plan.runs_transposed(planner::Pass::GradW));
    planner::Plan own = plan;
    own.backward.clear();
    *this = FullyConnected(here, own, machine, mode, executor);
    state_->backward =
        std::make_unique<FullyConnected>(there, plan.backward.front(), machine, mode, executor);
    state_->check_memory();
    return;
  }
  if (plan.partition.g != problem.size.g)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the plan is for {} groups, the layer has {}; plan it anew",
                            plan.partition.g, problem.size.g));
  const partitioner::TileGrid grid = tile_grid(problem, plan, machine);
  partitioner::check(grid);
  state_ = std::make_unique<State>(State{
      .problem = problem, .grid = grid, .weights = {problem, grid, executor}, .machine = machine});
  state_->fwd.emplace(spec_of(problem, plan, grid, Pass::Fwd), machine, mode, executor);
  if (problem.grad_a)
    state_->grad_a.emplace(spec_of(problem, plan, grid, Pass::GradA), machine, mode, executor);
  if (problem.grad_w)
    state_->grad_w.emplace(spec_of(problem, plan, grid, Pass::GradW), grad_w_exchange(plan),
                           machine, mode, executor);
}

FullyConnected::~FullyConnected() = default;
FullyConnected::FullyConnected(FullyConnected&&) noexcept = default;
FullyConnected& FullyConnected::operator=(FullyConnected&&) noexcept = default;

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    std::span<const sparse::Csr<float>> weights, const partitioner::EncodeOptions& options) {
  if (!state_->backward) return state_->weights.set(weights, options);
  std::vector<sparse::Csr<float>> before;
  for (std::int64_t g = 0; !state_->weights.empty() && g < state_->problem.size.g; ++g)
    before.push_back(state_->weights.given(g));
  state_->weights.check(weights);  // in the caller's words, not the transpose's
  const auto go_back = [&] {
    if (!before.empty()) state_->turn_weights(before, {});
  };
  if (auto misfit = state_->turn_weights(weights, options)) return turned_name(*misfit);
  try {
    auto misfit = state_->weights.set(weights, options);
    if (misfit) go_back();
    return misfit;
  } catch (...) {
    go_back();
    throw;
  }
}

std::optional<partitioner::Misfit> FullyConnected::set_weights(
    const sparse::Csr<float>& weights, const partitioner::EncodeOptions& options) {
  return set_weights({&weights, 1}, options);
}

std::optional<partitioner::Misfit> FullyConnected::update_weights(
    const sparse::PatternChange& change, std::int64_t group) {
  if (!state_->backward) return state_->weights.update(change, group);
  sparse::PatternChange turned = change;
  for (auto* blocks : {&turned.removed, &turned.added})
    for (sparse::BlockAt& at : *blocks) std::swap(at.row, at.col);
  const std::vector<float> before = state_->weights.given(group).values;
  const auto go_back = [&] {
    state_->weights.update({change.added, change.removed}, group);
    state_->weights.set_values(before, group);
  };
  if (auto misfit = state_->weights.update(change, group)) return misfit;
  try {
    auto misfit = state_->backward->update_weights(turned, group);
    if (!misfit) return {};
    go_back();
    return turned_name(*misfit);
  } catch (...) {
    go_back();
    throw;
  }
}

void FullyConnected::set_values(std::span<const float> values, std::int64_t group) {
  state_->weights.set_values(values, group);
  if (!state_->backward) return;
  const sparse::Csr<float> turned = sparse::transpose(state_->weights.given(group));
  state_->backward->set_values(turned.values, group);
}

template <class T>
bool FullyConnected::forward(MatrixView<const T> s, MatrixView<T> q, const RunOptions& options,
                             device::Ledger& ledger) {
  State& state = *state_;
  state.check_call<T>(true, "forward");
  if (!state.run<T>(*state.fwd, state.operand("s", s, &Dims::y), state.operand("q", q, &Dims::x),
                    options, ledger))
    return false;
  state.check<T>(Pass::Fwd, s, q, options);
  return true;
}

template <class T>
bool FullyConnected::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const RunOptions& options, device::Ledger& ledger) {
  State& state = *state_;
  state.check_call<T>(state.grad_a.has_value() || state.backward, "grad_a");
  if (!state.backward) {
    const bool finished = state.run<T>(*state.grad_a, state.operand("q_grad", q_grad, &Dims::x),
                                       state.operand("s_grad", s_grad, &Dims::y), options, ledger);
    if (finished) state.check<T>(Pass::GradA, q_grad, s_grad, options);
    return finished;
  }
  state.check_operand("q_grad", q_grad, &Dims::x);
  state.check_operand("s_grad", s_grad, &Dims::y);
  device::Ledger way = state.rehome();
  const bool finished = state.backward->forward<T>(q_grad, s_grad, options, ledger);
  ledger.steps.insert(ledger.steps.begin(), way.steps.begin(), way.steps.end());
  if (options.tiles != nullptr) {  // only charged: nothing is known tile by tile
    options.tiles->steps.insert(options.tiles->steps.begin(), way.steps.size(), {});
    options.tiles->phases.insert(options.tiles->phases.begin(), way.steps.size(), -1);
  }
  return finished;
}

template <class T>
bool FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<sparse::Csr<float>> gradients, const RunOptions& options,
                            device::Ledger& ledger) {
  State& state = *state_;
  state.check_call<T>(state.grad_w.has_value() || state.turns_grad_w(), "grad_w");
  if (!state.turns_grad_w()) return state.run_grad_w<T>(q_grad, s, gradients, options, ledger);
  state.check_operand("q_grad", q_grad, &Dims::x);
  state.check_operand("s", s, &Dims::y);
  // transpose(dR) = S * transpose(dQ): the other layout's gradient with operands changed over.
  if (!state.backward->grad_w<T>(s, q_grad, gradients, options, ledger)) return false;
  for (sparse::Csr<float>& gradient : gradients) gradient = sparse::transpose(gradient);
  return true;
}

template <class T>
device::Ledger FullyConnected::forward(MatrixView<const T> s, MatrixView<T> q) {
  device::Ledger ledger;
  static_cast<void>(forward<T>(s, q, {}, ledger));  // nobody asks it to stop
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad) {
  device::Ledger ledger;
  static_cast<void>(grad_a<T>(q_grad, s_grad, {}, ledger));
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      std::span<sparse::Csr<float>> gradients) {
  device::Ledger ledger;
  static_cast<void>(grad_w<T>(q_grad, s, gradients, {}, ledger));
  return ledger;
}

template <class T>
device::Ledger FullyConnected::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                                      sparse::Csr<float>& gradient) {
  return grad_w<T>(q_grad, s, std::span(&gradient, 1));
}

namespace {

[[noreturn]] void throw_no_pass(Pass pass) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: the layer was planned without this pass", planner::to_string(pass)));
}

}  // namespace

template <class OfDense, class OfGradW>
auto FullyConnected::State::ask(Pass pass, OfDense of_dense, OfGradW of_grad_w) const {
  if (pass == Pass::Fwd) return of_dense(*fwd);
  if (pass == Pass::GradA && backward) return of_dense(*backward->state_->fwd);
  if (pass == Pass::GradA && grad_a) return of_dense(*grad_a);
  if (pass == Pass::GradW && turns_grad_w()) return of_grad_w(*backward->state_->grad_w);
  if (pass == Pass::GradW && grad_w) return of_grad_w(*grad_w);
  throw_no_pass(pass);
}

const Program& FullyConnected::program(Pass pass) const {
  const auto program_of = [](const auto& p) { return &p.program(); };
  return *state_->ask(pass, program_of, program_of);
}

device::MemoryUse FullyConnected::memory(Pass pass) const {
  const auto memory_of = [](const auto& p) { return p.memory(); };
  return state_->ask(pass, memory_of, memory_of);
}

device::MemoryUse memory_use(const planner::Problem& problem, const planner::Plan& plan,
                             const device::Machine& machine, Pass pass) {
  planner::check_problem(problem);
  if (!plan.backward.empty() && (pass == Pass::GradA || plan.runs_transposed(pass))) {
    const auto [here, there] = planner::two_problems(problem, plan.runs_transposed(Pass::GradW));
    return memory_use(there, plan.backward.front(), machine,
                      pass == Pass::GradA ? Pass::Fwd : pass);
  }
  const bool has_pass =
      pass == Pass::Fwd || (pass == Pass::GradA ? problem.grad_a : problem.grad_w);
  if (!has_pass) throw_no_pass(pass);
  const partitioner::TileGrid grid = tile_grid(problem, plan, machine);
  partitioner::check(grid);
  const PassSpec spec = spec_of(problem, plan, grid, pass);
  return pass == Pass::GradW ? GradWPass::memory_of(spec, grad_w_exchange(plan), machine)
                             : DensePass::memory_of(spec, machine);
}

std::int64_t FullyConnected::batch() const { return state_->problem.size.z; }

const partitioner::Buckets& FullyConnected::buckets(std::int64_t group) const {
  return state_->weights.buckets(group);
}

partitioner::SpillStats FullyConnected::spill() const { return state_->weights.spill(); }

partitioner::Travel FullyConnected::travel() const {
  state_->weights.buckets(0);  // refuses where there are none
  return state_->weights.image().travel();
}

const sparse::Csr<float>& FullyConnected::weights(std::int64_t group) const {
  return state_->weights.given(group);
}

Bytes FullyConnected::high_water() const {
  const State& s = *state_;
  Bytes most = s.fwd->high_water();
  if (s.grad_a) most = std::max(most, s.grad_a->high_water());
  if (s.grad_w) most = std::max(most, s.grad_w->high_water());
  if (s.backward)
    most = std::max(most + s.backward->state_->bucket_bytes(),
                    s.backward->high_water() + s.bucket_bytes());
  return most;
}

#define TESSERA_PASSES(T)                                                                      \
  template device::Ledger FullyConnected::forward(MatrixView<const T>, MatrixView<T>);         \
  template device::Ledger FullyConnected::grad_a(MatrixView<const T>, MatrixView<T>);          \
  template device::Ledger FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,     \
                                                 sparse::Csr<float>&);                         \
  template device::Ledger FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,     \
                                                 std::span<sparse::Csr<float>>);               \
  template bool FullyConnected::forward(MatrixView<const T>, MatrixView<T>, const RunOptions&, \
                                        device::Ledger&);                                      \
  template bool FullyConnected::grad_a(MatrixView<const T>, MatrixView<T>, const RunOptions&,  \
                                       device::Ledger&);                                       \
  template bool FullyConnected::grad_w(MatrixView<const T>, MatrixView<const T>,               \
                                       std::span<sparse::Csr<float>>, const RunOptions&,       \
                                       device::Ledger&);
TESSERA_PASSES(float)
TESSERA_PASSES(Half)
TESSERA_PASSES(BFloat16)
#undef TESSERA_PASSES

}  // namespace tessera::inline v0::runtime
