#include "tessera/runtime/static_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"
#include "tessera/runtime/internal/layer_on_tiles.hpp"
#include "tessera/runtime/internal/static_pass.hpp"
#include "tessera/sparse/value_range.hpp"

namespace tessera::runtime {

using StaticPass = internal::OwnPass<internal::StaticPass>;

device::Machine machine_of_group(const device::Machine& machine, std::int64_t groups) {
  if (groups < 1 || groups > machine.tiles)
    throw_invalid(fmt::format("a static layer of {} groups needs a tile for each; {} has {} tiles",
                              groups, machine.name, machine.tiles));
  device::Machine part = machine;
  part.tiles = machine.tiles / groups;
  return part;
}

namespace {

internal::StaticSizes sizes_of(const Problem& problem, const device::Machine& machine) {
  check_problem(problem);
  codelets::check_static_kernel(problem.block);
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
    throw_invalid(
        fmt::format("{} matrices and {} plans were given; a static layer of {} groups has one of "
                    "each for a group",
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

struct StaticLayer::State : internal::LayerOnTiles {
  State(const Problem& p, std::span<const sparse::CheckedCsr<float>> w,
        std::span<const planner::StaticPlan> plans, const device::Machine& on,
        device::ExchangeMode mode, Executor& threads);

  bool empty() const override { return false; }
  const sparse::CheckedCsr<float>& given(std::int64_t group) const override {
    return weights[std::size_t(group)];
  }
  verify::Rounding rounding(Pass of) const override;
  layer::LayerFacts facts() const override;
  void set_values(std::span<const float> values, std::int64_t group) override;

  // Nothing calls this: facts() say that the pattern stays.
  std::optional<partitioner::Misfit> set_weights(std::vector<sparse::CheckedCsr<float>>) override {
    return std::nullopt;
  }

  const StaticPass& pass(Pass of) const;

  std::vector<sparse::CheckedCsr<float>> weights;
  internal::StaticCut cut;
  std::optional<internal::StaticCut> grad_a_cut;
  std::array<std::optional<StaticPass>, 3> passes;  // by Pass
  std::vector<std::byte> stored;     // values in the layer's type, in the order of cut.homes
  std::vector<std::byte> gradients;  // in the layer's type, in the order of the patterns

 private:
  // Writes the values of a group to the tiles that store them.
  void store(std::int64_t group);
  Dims padded(Pass) const override { return cut.sizes.size; }
  bool product(Pass of, device::ByteRows in, device::ByteRows out, const PassOptions& options,
               device::Ledger& ledger) override;
  bool gradient(device::ByteRows q_grad, device::ByteRows s, std::span<float> results,
                const PassOptions& options, device::Ledger& ledger) override;
};

layer::LayerFacts StaticLayer::State::facts() const {
  layer::LayerFacts facts = LayerOnTiles::facts();
  facts.changes_pattern = false;
  return facts;
}

StaticLayer::State::State(const Problem& p, std::span<const sparse::CheckedCsr<float>> w,
                          std::span<const planner::StaticPlan> plans, const device::Machine& on,
                          device::ExchangeMode mode, Executor& threads)
    : LayerOnTiles(p, on, threads),
      weights(w.begin(), w.end()),
      cut(cut_layer(p, w, plans, on)),
      grad_a_cut(cut_of_grad_a(p, w, plans, on)) {
  for (const sparse::CheckedCsr<float>& matrix : weights)
    sparse::check_range(matrix->values, problem.data_type);
  for (const Pass pass : passes_of(problem)) {
    const bool own = pass == Pass::GradA && grad_a_cut;
    const auto at = static_cast<std::size_t>(pass);
    programs[at] = &passes[at].emplace(on, mode, executor, own ? *grad_a_cut : cut, cut, pass);
  }
  stored.resize(std::size_t(cut.stored_values() * cut.sizes.bytes()));
  for (std::int64_t g = 0; g < problem.size.g; ++g) store(g);
}

const StaticPass& StaticLayer::State::pass(Pass of) const {
  return static_cast<const StaticPass&>(planned(of));
}

void StaticLayer::State::store(std::int64_t group) {
  forget_sums();
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

// Blocks of half are summed in half, and so are the partial sums of several tiles.
verify::Rounding StaticLayer::State::rounding(Pass of) const {
  const std::int64_t depth = pass(of)->depth();
  const DataType type = problem.data_type;
  const bool narrow =
      depth > 1 || (of != Pass::GradW && type == DataType::Half && !problem.block.is_element());
  return {type, narrow ? type : DataType::Float, depth};
}

bool StaticLayer::State::product(Pass of, device::ByteRows in, device::ByteRows out,
                                 const PassOptions& options, device::Ledger& ledger) {
  return passes[std::size_t(of)]->run(
      options, ledger, internal::StaticArrays{.in = in, .out = out, .values = stored.data()});
}

bool StaticLayer::State::gradient(device::ByteRows q_grad, device::ByteRows s,
                                  std::span<float> results, const PassOptions& options,
                                  device::Ledger& ledger) {
  gradients.resize(std::size_t(cut.first_value.back() * cut.sizes.bytes()));
  const internal::StaticArrays arrays{.in = q_grad, .in_s = s, .gradients = gradients.data()};
  if (!passes[std::size_t(Pass::GradW)]->run(options, ledger, arrays)) return false;
  with_type(problem.data_type, [&]<class T>(T) {
    const T* const from = reinterpret_cast<const T*>(gradients.data());
    std::transform(from, from + results.size(), results.begin(),
                   [](T value) { return float(value); });
  });
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
  internal::put_values(values, weights[std::size_t(group)]);
  store(group);
}

const Program& StaticLayer::program(Pass pass) const { return state().program(pass); }
device::MemoryUse StaticLayer::memory(Pass pass) const { return state().memory(pass); }
Bytes StaticLayer::high_water() const { return state().high_water(); }

}  // namespace tessera::runtime
