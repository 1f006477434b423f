#include "tessera/runtime/internal/layout_passes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/internal/layer_on_tiles.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

PassSpec spec_of(const Problem& problem, const planner::Plan& plan,
                 const partitioner::TileGrid& grid, Pass pass) {
  const auto method = pass == Pass::Fwd     ? plan.fwd
                      : pass == Pass::GradA ? plan.grad_a
                                            : plan.grad_w;
  return {grid, problem.size.g, method, problem.partials_type, plan.operand_placement};
}

GradWExchange grad_w_exchange(const planner::Plan& plan) {
  return plan.grad_w_exchange_buckets ? GradWExchange::Buckets : GradWExchange::Inputs;
}

partitioner::TileGrid checked_grid(const Problem& problem, const planner::Plan& plan,
                                   const device::Machine& machine) {
  check_problem(problem);
  if (plan.partition.g != problem.size.g)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the plan is for {} groups, but the layer has {}; plan it again",
                            plan.partition.g, problem.size.g));
  const partitioner::TileGrid grid = tile_grid(problem, plan, machine);
  partitioner::check(grid);
  return grid;
}

LayoutPasses::LayoutPasses(const Problem& problem, const planner::Plan& plan,
                           const device::Machine& machine, device::ExchangeMode mode,
                           Executor& executor)
    : problem_(problem),
      grid_(checked_grid(problem, plan, machine)),
      weights_(problem, grid_, executor),
      load_cost_(internal::load_cost(spec_of(problem, plan, grid_, Pass::Fwd), machine)) {
  const auto make = [&](auto& own, Pass pass, const auto&... of_kind) {
    own.emplace(machine, mode, executor, spec_of(problem, plan, grid_, pass), of_kind...);
  };
  make(fwd_, Pass::Fwd);
  if (problem.grad_a) make(grad_a_, Pass::GradA);
  if (problem.grad_w) make(grad_w_, Pass::GradW, grad_w_exchange(plan));
}

bool LayoutPasses::has(Pass pass) const {
  return pass == Pass::Fwd || (pass == Pass::GradA ? grad_a_.has_value() : grad_w_.has_value());
}

// The number of partial sums of a result is the number of cells along the summed axis.
verify::Rounding LayoutPasses::rounding(Pass pass) const {
  const Dims& splits = grid_.splits;
  const std::int64_t partials = pass == Pass::Fwd     ? splits.y
                                : pass == Pass::GradA ? splits.x
                                                      : splits.z;
  return {problem_.data_type, problem_.partials_type, partials};
}

bool LayoutPasses::product(Pass pass, const std::byte* values, device::ByteRows in,
                           device::ByteRows out, const PassOptions& options,
                           device::Ledger& ledger) {
  BucketImage image = weights_.image();
  image.values = values;
  return (pass == Pass::Fwd ? *fwd_ : *grad_a_).run(options, ledger, image, in, out);
}

bool LayoutPasses::gradient(device::ByteRows q_grad, device::ByteRows s, std::span<float> gradients,
                            const PassOptions& options, device::Ledger& ledger) {
  const std::int64_t groups = problem_.size.g;
  const BucketImage image = weights_.image();
  const std::size_t values =
      std::size_t(groups * grid_.buckets()) * std::size_t(image.groups[0].values_per_bucket());
  in_order_.resize(values * std::size_t(bytes_of(problem_.data_type)));
  const GradWPass::Operands operands{q_grad, s, in_order_.data()};
  if (!grad_w_->run(options, ledger, image, operands)) return false;
  with_type(problem_.data_type, [&]<class T>(T) {
    const std::span<const T> in_bucket_order(reinterpret_cast<const T*>(in_order_.data()), values);
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::size_t count = weights_.given(g)->values.size();
      weights_.to_given<T>(in_bucket_order, g, gradients.first(count));
      gradients = gradients.subspan(count);
    }
  });
  return true;
}

template <class Ask>
auto LayoutPasses::of(Pass pass, Ask&& ask) const {
  if (!has(pass)) throw_no_pass(pass);
  if (pass == Pass::GradW) return ask(*grad_w_);
  return ask(pass == Pass::Fwd ? *fwd_ : *grad_a_);
}

const Program& LayoutPasses::program(Pass pass) const {
  return *of(pass, [](const auto& p) { return &p.program(); });
}

device::MemoryUse LayoutPasses::memory(Pass pass) const {
  return of(pass, [](const auto& p) { return p.memory(); });
}

const device::Damage& LayoutPasses::damage(Pass pass) const {
  return *of(pass, [](const auto& p) { return &p.damage(); });
}

Bytes LayoutPasses::high_water() const {
  Bytes most;
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW})
    if (has(pass)) most = std::max(most, of(pass, [](const auto& p) { return p.high_water(); }));
  return most;
}

Bytes LayoutPasses::word_bytes() const {
  return Bytes((grid_.meta_words + grid_.grad_a_words) * grid_.word_bits / 8);
}

Bytes LayoutPasses::bucket_bytes() const {
  return word_bytes() + Bytes(grid_.blocks * grid_.block.area() * bytes_of(grid_.data_type));
}

}  // namespace tessera::runtime::internal
