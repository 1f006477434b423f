#pragma once

#include <optional>

#include "tessera/planner/internal/network_homes.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/planner/network_cost.hpp"

namespace tessera::planner {

// The share of a dense tensor on the fullest tile, in elements and rows.
struct FullestShare {
  std::int64_t elements = 0, rows = 0;
};

inline FullestShare fullest(const internal::Home& home) {
  return {home.most_elements(), home.most_rows()};
}

// The layouts of the plan, and where the layer's tensors are and are needed. If there are two
// layouts, that of transpose(R) runs GradA. The optimiser updates the layout that runs GradW, and
// the new values move to the other one.
struct PricedLayer::State {
  State(const NetworkSpec& spec, std::int64_t layer, const Plan& plan,
        const device::Machine& machine);

  const NetworkLayer& layer() const { return spec.layers[std::size_t(l)]; }
  bool is_last() const { return l + 1 == std::ssize(spec.layers); }
  bool trains() const { return spec.loss.has_value(); }
  std::int64_t element() const { return bytes_of(problem.data_type); }

  Cycles hand_over(const internal::Home& from, const internal::Home& to) const {
    return internal::hand_over_cycles(from, to, element(), machine);
  }
  Cycles fetch(const internal::Home& from, const internal::Home& to) const {
    return internal::fetch_cycles(from, to, element(), machine);
  }
  WorkCost work(NetworkWork kind, Cycles cycles) const { return {kind, l, cycles}; }

  // The layout that runs GradW, and the plan of GradA's pass, which is Fwd of its layout if there
  // are two.
  const Plan& updated() const { return plan.layout_of(Pass::GradW); }
  const PassCost& grad_a_cost() const;
  Cycles rehome() const;

  // The fetch of an operand in GradW: nothing if it is kept.
  WorkCost grad_w_fetch(const internal::Home& from, bool is_s) const;

  // Costs that programs of single layers have too.
  Cycles activation() const;
  Cycles loss() const;
  Cycles derivative(const internal::Home& at) const;
  Cycles update_weights() const;
  // The bias alone, without barriers and launches; `gradient` is where sums over rows are taken.
  Cycles bias(const internal::Home& gradient) const;

  const NetworkSpec& spec;
  const std::int64_t l;
  const Plan& plan;
  const device::Machine& machine;
  const Problem problem;
  const internal::Homes forward;
  std::optional<internal::Homes> transposed_form;
  const bool updates_transposed;
  // The homes of results: Q of Fwd, dS of GradA, and whole columns for the loss.
  internal::Home result, input_gradient, columns;
  // True: GradW finds S, or dQ, in the slices that Fwd or GradA fetched to the same tile, because
  // no other tile needs them.
  bool keeps_s = false, keeps_dq = false;
  // The slices that tiles need: of S in Fwd, of dQ in GradA, and of both in GradW.
  internal::Home fwd_s, grad_a_dq, grad_w_s, grad_w_dq;
};

}  // namespace tessera::planner
