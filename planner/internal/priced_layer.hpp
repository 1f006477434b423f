#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/planner/internal/home_cycles.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/planner/plan.hpp"

// The planned cost of a network's program. Each cost is that of the slowest tile with the barriers
// and launches of the steps, as the runtime runs them.
//
// Results stay on the tiles that added them up, and the first exchange of each pass fetches the
// slices of its operands from there, so the cost of a pass depends on the plans of the layers
// beside it. Starts of receiving (Machine::receive_start) are not included in what is fetched, so
// it costs more where that is not 0.
namespace tessera::planner {

// The share of a dense tensor on the fullest tile, in elements and rows.
struct FullestShare {
  std::int64_t elements = 0, rows = 0;
};

inline FullestShare fullest(const Home& home) { return {home.most_elements(), home.most_rows()}; }

// A layer of a network with one of the plans that it may have: one layout or two with operands at
// home, or a dense plan in one round, which has no layout. The places of its tensors are computed
// once, for the prices of all links. If there are two layouts, that of transpose(R) runs GradA. The
// optimiser updates the layout that runs GradW, and the new values move to the other one.
struct PricedLayer {
  // The spec, the plan and the machine must outlive the object.
  PricedLayer(const NetworkSpec& network, std::int64_t number, const Plan& of_layer,
              const device::Machine& on);

  // Returns the work whose cost does not depend on the plans of the neighbours, and the part of the
  // other work that does not.
  std::vector<WorkCost> own_work() const;

  // Returns what the plan of the next layer adds: its Fwd and GradW fetch the result of this layer;
  // GradA and GradW of this layer fetch the gradient from the tiles on which the next layer's GradA
  // adds it up, and those tiles take the derivative.
  std::vector<WorkCost> link_work(const PricedLayer& next) const;

  // Return the work of the same layers if each is a program of its own that finds its operands at
  // home (Placement::AtHome): an exchange with a barrier of its own hands a tensor over from the
  // tiles that hold it to those that hold the operands of the next pass, and each layer updates its
  // own bias.
  std::vector<WorkCost> apart_work() const;
  std::vector<WorkCost> apart_link_work(const PricedLayer& next) const;

  // Returns the work beside the passes of a layer whose plan has operands spread evenly
  // (Placement::EvenSpread): results go from the tiles that add them up to that spread, and so does
  // the gradient of the loss in the last layer.
  std::vector<WorkCost> spread_work() const;

  // Returns the memory of the fullest tile that the layer needs during the whole step: its buckets,
  // results, and the states of its optimiser.
  Bytes resident() const;

  // Returns the temporary memory of the layer's largest pass.
  Bytes temp() const;

  // Returns the temporary memory that the layer needs while the passes of the next layer run: its
  // results if it recomputes, else nothing.
  Bytes temp_of_next() const;

  const NetworkLayer& layer() const { return spec.layers[std::size_t(l)]; }
  bool is_last() const { return l + 1 == std::ssize(spec.layers); }
  bool is_dense() const { return plan.dense.has_value(); }
  bool recomputes() const { return trains() && layer().recompute; }
  bool trains() const { return spec.loss.has_value(); }
  std::int64_t element() const { return bytes_of(problem.data_type); }

  Cycles hand_over(const Home& from, const Home& to) const {
    return internal::hand_over_cycles(from, to, element(), machine);
  }
  Cycles fetch(const Home& from, const Home& to) const {
    return internal::fetch_cycles(from, to, element(), machine);
  }
  WorkCost work_of(NetworkWork kind, Cycles cycles) const { return {kind, l, cycles}; }

  // The layout that runs GradW, and the plan of GradA's pass, which is Fwd of its layout if there
  // are two.
  const Plan& updated() const { return plan.layout_of(Pass::GradW); }
  const PassCost& grad_a_cost() const;
  Cycles rehome() const;

  // True: S and dQ are brought to homes of their own.
  bool has_own_homes() const { return layer().operands != Placement::AsLeft; }

  // The homes that the layer asks for, of S also if it comes from the host; and the operands of a
  // program of the layer alone.
  Home home_of_s() const {
    return planner::home_of_s(problem, plan, layer().operands, machine.tiles);
  }
  Home home_of_dq() const {
    return planner::home_of_dq(problem, plan, layer().operands, machine.tiles);
  }
  Home operand_s() const { return planner::home_of_s(problem, plan, alone(), machine.tiles); }
  Home operand_dq() const { return planner::home_of_dq(problem, plan, alone(), machine.tiles); }

  // The values of the fullest tile that the optimiser changes, and whether their gradients are
  // computed on other tiles.
  std::int64_t most_updated_values() const;
  bool gradients_move() const;

  // Returns the cycles in which the first exchange of a pass brings what it needs of R: the other
  // buckets of a cell, words, or the slices of a dense R.
  Cycles weights_fetch(Pass pass) const;

  std::int64_t weight_bytes() const;

  // The elements of results that a layer which recomputes has in front of the next layer's passes.
  std::int64_t recomputed_elements() const;

  // The fetch of an operand in GradW: nothing if it is kept.
  WorkCost grad_w_fetch(const Home& from, bool is_s) const;

  // Costs that programs of single layers have too.
  Cycles activation() const;
  Cycles loss() const;
  Cycles derivative(const Home& at) const;
  Cycles update_weights() const;
  // The update of the bias without its launch; `gradient` is where sums over rows are taken. The
  // first one has the barriers of a program of the layer alone, the second one those of a network.
  Cycles bias_alone(const Home& gradient) const;
  Cycles bias(const Home& gradient) const;

  const NetworkSpec& spec;
  const std::int64_t l;
  const Plan& plan;
  const device::Machine& machine;
  const Problem problem;
  std::optional<Homes> forward, transposed_form;  // none if the plan is dense
  const bool updates_transposed;
  // The homes of results: Q of Fwd, dS of GradA, and whole columns for the loss.
  Home result, input_gradient, columns;
  // These are for dense layers: R between the passes, and the slices of it that Fwd and GradA need.
  Home weights, fwd_r, grad_a_r;
  // True: GradW finds S, or dQ, in the slices that Fwd or GradA fetched to the same tile, because
  // no other tile needs them.
  bool keeps_s = false, keeps_dq = false;
  // The slices that tiles need: of S in Fwd, of dQ in GradA, and of both in GradW.
  Home fwd_s, grad_a_dq, grad_w_s, grad_w_dq;

 private:
  Placement alone() const { return is_dense() ? Placement::EvenSpread : Placement::AtHome; }
  void set_sparse_homes();
  void set_dense_homes();
};

}  // namespace tessera::planner
