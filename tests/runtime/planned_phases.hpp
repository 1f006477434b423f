#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/cost_term.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

// The cycles of a plan and those that the engine counts, phase by phase.
namespace tessera::runtime {

struct Layer {
  Problem problem;
  device::Machine machine = device::machine_preset("gc200");
  planner::Options options;
};

// The cycles of one phase of one pass of a layer.
struct PhaseCycles {
  int layer = 0;
  Pass pass = Pass::Fwd;
  Phase phase = Phase::Distribute;
  bool element = false;  // the layer is sparse by elements
  double planned = 0, counted = 0;

  double ratio() const { return planned / counted; }
};

inline std::map<Phase, double> planned_phases(const planner::Plan& plan, Pass pass) {
  std::map<Phase, double> phases;
  const bool buckets_travel = plan.layout_of(pass).grad_w_exchange_buckets;
  for (const planner::CostTerm& term : plan.cost.find(pass)->terms)
    phases[planner::phase_of(term.name, pass, buckets_travel)] += double(term.cycles.value);
  return phases;
}

inline std::map<Phase, double> counted_phases(const device::Ledger& ledger) {
  std::map<Phase, double> phases;
  for (const device::PhaseTotal& total : ledger.phases()) {
    phases[total.phase] += double(total.busy().value);
    phases[Phase::Overhead] += double(total.overhead.value);
  }
  return phases;
}

template <class T>
std::map<Pass, device::Ledger> run_passes(FullyConnected& layer, Dims size) {
  const auto s = random_matrix<T>(size.y, size.z, 1);
  const auto q_grad = random_matrix<T>(size.x, size.z, 2);
  Matrix<T> q(size.x, size.z), s_grad(size.y, size.z);
  std::vector<float> gradient(std::size_t(layer.values()));
  return {{Pass::Fwd, layer.forward<T>(s.view(), q.view())},
          {Pass::GradA, layer.grad_a<T>(q_grad.view(), s_grad.view())},
          {Pass::GradW, layer.grad_w<T>(q_grad.view(), s.view(), gradient)}};
}

// Plans and runs the layer, appends its phases and returns its plan. Layers that spill are left
// out, because a plan has their mean. The plan knows the pattern, as those of the tools do, or only
// its density.
inline std::optional<planner::Plan> append_layer(const Layer& layer, int number, Executor& executor,
                                                 std::vector<PhaseCycles>& all,
                                                 bool knows_pattern = true) {
  const Problem& p = layer.problem;
  const auto weights =
      sparse::random_pattern(p.size.x, p.size.y, p.block, p.density, std::uint64_t(number));
  const PatternStats stats = sparse::pattern_stats(weights);
  const planner::Plan plan =
      planner::plan_or_throw(p, layer.machine, layer.options, knows_pattern ? &stats : nullptr);
  FullyConnected connected(p, plan, layer.machine, device::ExchangeMode::Share, executor);
  if (connected.set_weights(weights) || connected.travel().steps() > 0) return std::nullopt;
  with_type(p.data_type, [&]<class T>(T) {
    for (const auto& [pass, ledger] : run_passes<T>(connected, p.size)) {
      std::map<Phase, double> planned = planned_phases(plan, pass);
      std::map<Phase, double> counted = counted_phases(ledger);
      for (const auto& [phase, cycles] : planned) counted[phase] += 0;  // those that did not run
      for (const auto& [phase, cycles] : counted)
        all.push_back({number, pass, phase, p.is_element_wise(), planned[phase], cycles});
    }
  });
  return plan;
}

}  // namespace tessera::runtime
