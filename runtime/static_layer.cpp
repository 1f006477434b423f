#include "tessera/runtime/static_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/runtime/internal/layer_calls.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"
#include "tessera/runtime/internal/padded.hpp"
#include "tessera/runtime/internal/static_pass.hpp"
#include "tessera/sparse/value_range.hpp"

namespace tessera::runtime {

using internal::StaticPass;

device::Machine machine_of_group(const device::Machine& machine, std::int64_t groups) {
  if (groups < 1 || groups > machine.tiles)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a static layer of {} groups needs a tile for each; {} has {} tiles",
                            groups, machine.name, machine.tiles));
  device::Machine part = machine;
  part.tiles = machine.tiles / groups;
  return part;
}

namespace {

internal::StaticSizes sizes_of(const Problem& problem, const device::Machine& machine) {
  check_problem(problem);
  if (!codelets::has_static_kernel(problem.block))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("no static kernel for blocks of {}x{}; they must be 1x1, 4x4, 8x8 or "
                            "16x16",
                            problem.block.rows, problem.block.cols));
  internal::StaticSizes sizes;
  sizes.block = problem.block;
  sizes.type = problem.data_type;
  sizes.z_grain = machine.vector_width(problem.data_type);
  sizes.size = problem.size_in_blocks();
  sizes.size.z = round_up(sizes.size.z, sizes.z_grain);
  sizes.tiles = machine_of_group(machine, problem.size.g).tiles;
  return sizes;
}

internal::StaticCut cut_layer(const Problem& problem,
                              std::span<const sparse::CheckedCsr<float>> weights,
                              std::span<const planner::StaticPlan> plans,
                              const device::Machine& machine) {
  const internal::StaticSizes sizes = sizes_of(problem, machine);
  if (std::ssize(weights) != problem.size.g || std::ssize(plans) != problem.size.g)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} matrices and {} plans were given; a static layer of {} groups has "
                            "one of each for a group",
                            weights.size(), plans.size(), problem.size.g));
  return internal::cut_static(sizes, weights, plans);
}

// Returns the cut of GradA if some group has tiles of its own for it.
std::optional<internal::StaticCut> cut_of_grad_a(const Problem& problem,
                                                 std::span<const sparse::CheckedCsr<float>> weights,
                                                 std::span<const planner::StaticPlan> plans,
                                                 const device::Machine& machine) {
  const bool is_own = std::ranges::any_of(
      plans, [](const planner::StaticPlan& plan) { return plan.grad_a.has_value(); });
  if (!problem.grad_a || !is_own) return {};
  return internal::cut_grad_a(sizes_of(problem, machine), weights, plans);
}

}  // namespace

struct StaticLayer::State : layer::BackendOf<device::Ledger> {
  State(const Problem& p, std::span<const sparse::CheckedCsr<float>> w,
        std::span<const planner::StaticPlan> plans, const device::Machine& machine,
        device::ExchangeMode mode, Executor& threads);

  // Throws Error{InvalidArgument} unless the layer has the group.
  void check_group(std::int64_t group) const;
  StaticPass& pass(Pass pass) const;
  std::int64_t values() const { return cut.first_value.back(); }

  // Writes the values of a group to the tiles that store them.
  void store(std::int64_t group);
  template <class T>
  internal::Padded<T> operand(MatrixView<T> view, std::int64_t Dims::* side);
  verify::Rounding rounding(Pass pass) const override;
  internal::CheckFacts check_facts(Pass pass) const;
  internal::CheckedWeights to_check();

  template <class T>
  bool product(Pass pass, MatrixView<const T> in, MatrixView<T> out, const PassOptions& options,
               device::Ledger& ledger);
  template <class T>
  bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients,
                const PassOptions& options, device::Ledger& ledger);

  Problem problem;
  Executor& executor;
  std::vector<sparse::CheckedCsr<float>> weights;
  verify::KeptSums sums;  // of `weights`
  internal::StaticCut cut;
  std::optional<internal::StaticCut> grad_a_cut;
  std::array<std::unique_ptr<StaticPass>, 3> passes;  // by Pass
  std::vector<std::byte> stored;     // values in the layer's type, in the order of cut.homes
  std::vector<std::byte> gradients;  // in the layer's type, in the order of the patterns
  std::array<std::vector<std::byte>, 2> copies;  // padded operands, by side
  double clock_hz;

  layer::LayerFacts facts() const override;
  void set_values(std::span<const float> values, std::int64_t group) override;
  const sparse::Csr<float>& weights_of(std::int64_t group) const override {
    check_group(group);
    return *weights[std::size_t(group)];
  }

  // Nothing calls this: facts() say that the pattern stays.
  std::optional<partitioner::Misfit> set_weights(std::vector<sparse::CheckedCsr<float>>) override {
    return std::nullopt;
  }

 private:
  bool takes(const layer::TargetOptions& options) const override {
    return dynamic_cast<const TileOptions*>(&options) != nullptr;
  }
  bool compute(Pass pass, const layer::Operands& operands, const PassOptions& options,
               device::Ledger& ledger) override {
    return internal::run_on_tiles(*this, pass, operands, options, ledger);
  }
  double seconds(const device::Ledger& ledger) const override {
    return double(ledger.total().value) / clock_hz;
  }
};

layer::LayerFacts StaticLayer::State::facts() const {
  const Dims& size = problem.size;
  return {.problem = problem,
          .passes = {true, problem.grad_a, problem.grad_w},
          .has_weights = true,
          .values = values(),
          .output_rows = size.g * size.x,
          .input_rows = size.g * size.y,
          .changes_pattern = false};
}

StaticLayer::State::State(const Problem& p, std::span<const sparse::CheckedCsr<float>> w,
                          std::span<const planner::StaticPlan> plans,
                          const device::Machine& machine, device::ExchangeMode mode,
                          Executor& threads)
    : problem(p),
      executor(threads),
      weights(w.begin(), w.end()),
      cut(cut_layer(p, w, plans, machine)),
      grad_a_cut(cut_of_grad_a(p, w, plans, machine)),
      clock_hz(machine.clock_hz) {
  for (const sparse::CheckedCsr<float>& matrix : weights)
    sparse::check_range(matrix->values, problem.data_type);
  for (const Pass pass : passes_of(problem)) {
    const bool own = pass == Pass::GradA && grad_a_cut;
    passes[std::size_t(pass)] =
        std::make_unique<StaticPass>(own ? *grad_a_cut : cut, cut, pass, machine, mode, executor);
  }
  stored.resize(std::size_t(cut.stored_values() * cut.sizes.bytes()));
  for (std::int64_t g = 0; g < problem.size.g; ++g) store(g);
}

void StaticLayer::State::check_group(std::int64_t group) const {
  if (group < 0 || group >= problem.size.g)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("group is {}; it must be in 0..{}", group, problem.size.g - 1));
}

StaticPass& StaticLayer::State::pass(Pass pass) const {
  if (passes[std::size_t(pass)] == nullptr) internal::throw_no_pass(pass);
  return *passes[std::size_t(pass)];
}

void StaticLayer::State::store(std::int64_t group) {
  sums.forget();
  const std::vector<float>& values = weights[std::size_t(group)]->values;
  const std::int64_t begin = cut.first_value[std::size_t(group)];
  with_type(problem.data_type, [&]<class T>(T) {
    T* const all = reinterpret_cast<T*>(stored.data());
    for (const internal::StaticHome& home : cut.homes) {
      if (cut.works[std::size_t(home.work)].group != group) continue;
      cut.for_each_place(home.work, cut.first_of(home), home.elements.size(),
                         [&](std::int64_t place, std::int64_t offset, std::int64_t count) {
                           for (std::int64_t i = 0; i < count; ++i)
                             all[home.first + offset + i] =
                                 T(values[std::size_t(place - begin + i)]);
                         });
    }
  });
}

template <class T>
internal::Padded<T> StaticLayer::State::operand(MatrixView<T> view, std::int64_t Dims::* side) {
  return {view, problem.size.g, cut.sizes.size.*side, cut.sizes.size.z,
          copies[side == &Dims::x ? 0 : 1]};
}

// Blocks of half are summed in half, and so are the partial sums of several tiles.
verify::Rounding StaticLayer::State::rounding(Pass of) const {
  const std::int64_t depth = pass(of).depth();
  const DataType type = problem.data_type;
  const bool narrow =
      depth > 1 || (of != Pass::GradW && type == DataType::Half && !problem.block.is_element());
  return {type, narrow ? type : DataType::Float, depth};
}

internal::CheckFacts StaticLayer::State::check_facts(Pass of) const {
  return {rounding(of), internal::memory_damage({pass(of).damage()})};
}

internal::CheckedWeights StaticLayer::State::to_check() {
  internal::CheckedWeights all{{}, sums, executor};
  for (const sparse::CheckedCsr<float>& matrix : weights) all.groups.push_back(&matrix);
  return all;
}

template <class T>
bool StaticLayer::State::product(Pass of, MatrixView<const T> in, MatrixView<T> out,
                                 const PassOptions& options, device::Ledger& ledger) {
  const bool forward = of == Pass::Fwd;
  auto from = operand(in, forward ? &Dims::y : &Dims::x);
  auto to = operand(out, forward ? &Dims::x : &Dims::y);
  from.read();
  internal::StaticArrays arrays;
  arrays.in = from.bytes();
  arrays.out = to.bytes();
  arrays.values = stored.data();
  if (!pass(of).run(arrays, options, ledger)) return false;
  to.write_back();
  if (options.self_check == nullptr) return true;
  internal::check_layer_product<T>(of, to_check(), in, out, check_facts(of), *options.self_check);
  return true;
}

template <class T>
bool StaticLayer::State::gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                                  std::span<float> results, const PassOptions& options,
                                  device::Ledger& ledger) {
  auto q_in = operand(q_grad, &Dims::x), s_in = operand(s, &Dims::y);
  q_in.read();
  s_in.read();
  gradients.resize(std::size_t(cut.first_value.back() * cut.sizes.bytes()));
  internal::StaticArrays arrays;
  arrays.in = q_in.bytes();
  arrays.in_s = s_in.bytes();
  arrays.gradients = gradients.data();
  if (!pass(Pass::GradW).run(arrays, options, ledger)) return false;
  std::transform(reinterpret_cast<const T*>(gradients.data()),
                 reinterpret_cast<const T*>(gradients.data()) + results.size(), results.begin(),
                 [](T value) { return float(value); });
  if (options.self_check != nullptr)
    internal::check_layer_gradient<T>(to_check(), results, q_grad, s, check_facts(Pass::GradW),
                                      *options.self_check);
  return true;
}

StaticLayer::StaticLayer(const Problem& problem, std::span<const sparse::CheckedCsr<float>> weights,
                         std::span<const planner::StaticPlan> plans, const device::Machine& machine,
                         device::ExchangeMode mode, Executor& executor)
    : LayerOf(std::make_unique<State>(problem, weights, plans, machine, mode, executor)) {}

StaticLayer::StaticLayer(const Problem& problem, const sparse::CheckedCsr<float>& weights,
                         const planner::StaticPlan& plan, const device::Machine& machine,
                         device::ExchangeMode mode, Executor& executor)
    : StaticLayer(problem, std::span(&weights, 1), std::span(&plan, 1), machine, mode, executor) {}

StaticLayer::State& StaticLayer::state() const { return static_cast<State&>(backend()); }

void StaticLayer::State::set_values(std::span<const float> values, std::int64_t group) {
  sparse::CheckedCsr<float>& matrix = weights[std::size_t(group)];
  std::copy(values.begin(), values.end(), matrix.mutable_values().begin());
  store(group);
}

const Program& StaticLayer::program(Pass pass) const { return state().pass(pass).program(); }
device::MemoryUse StaticLayer::memory(Pass pass) const { return state().pass(pass).memory(); }
std::int64_t StaticLayer::depth(Pass pass) const { return state().pass(pass).depth(); }

Bytes StaticLayer::high_water() const {
  Bytes most;
  for (const std::unique_ptr<StaticPass>& pass : state().passes)
    if (pass != nullptr) most = std::max(most, pass->memory().high_water());
  return most;
}

}  // namespace tessera::runtime
