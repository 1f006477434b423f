#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/runtime/internal/rehome_tables.hpp"
#include "tessera/runtime/internal/weight_layout.hpp"

namespace tessera::runtime::internal {

// Returns the problem of the forward layout: that of the layer, without the passes that the layout
// of transpose(R) runs if the plan has one.
Problem forward_problem(const Problem& problem, const planner::Plan& plan);

// The weights of a layer in its forward layout and, if the plan has two layouts, in that of
// transpose(R), which has the same values and whose Fwd is GradA. A call that fails leaves both as
// they were.
class EncodedWeights {
 public:
  // Throws Error{InvalidArgument} if the plan is not one of the problem. The executor must outlive
  // this object.
  EncodedWeights(const Problem& problem, const planner::Plan& plan, const device::Machine& machine,
                 Executor& executor);

  // True: the plan includes this pass of the layer.
  bool has(Pass pass) const {
    const WeightLayout& layout = layout_of(pass);
    const Pass own = pass_in_layout(pass);
    return own == Pass::Fwd || (own == Pass::GradA ? layout.problem.grad_a : layout.problem.grad_w);
  }

  // True: the second layout runs this pass.
  bool runs_transposed(Pass pass) const {
    return transposed &&
           (pass == Pass::GradA || (pass == Pass::GradW && transposed->problem.grad_w));
  }

  // Return the layout that runs a pass, the pass of that layout which it is, and its inputs.
  const WeightLayout& layout_of(Pass pass) const {
    return runs_transposed(pass) ? *transposed : forward;
  }
  Pass pass_in_layout(Pass pass) const {
    return transposed && pass == Pass::GradA ? Pass::Fwd : pass;
  }
  PassSpec spec(Pass pass) const { return layout_of(pass).spec(pass_in_layout(pass)); }

  // The functions of FullyConnected. A misfit of the second layout says so.
  std::optional<partitioner::Misfit> set(std::span<const sparse::CheckedCsr<float>> weights,
                                         const partitioner::EncodeOptions& options = {});
  partitioner::SavedWeights saved() const;
  void restore(const partitioner::SavedWeights& saved);

  // FullyConnected::update_weights in two halves, as in LayerWeights.
  std::optional<partitioner::Misfit> encode_update(const sparse::PatternChange& change,
                                                   std::int64_t group);
  void take_update(std::int64_t group);

  // Takes values in the order of the pattern of R. Allocates nothing from the second call on.
  void set_values(std::span<const float> values, std::int64_t group);

  // Makes the tables by which values move from the forward layout to the other one, or back.
  void make_tables(RehomeTables& tables, bool back = false) const;

  // Takes gradients of all groups in the order of transpose(R), and writes them in that of R.
  void turn_back(std::span<const float> turned, std::span<float> gradients) const;

  WeightLayout forward;
  std::optional<WeightLayout> transposed;

 private:
  // Returns the transposed weights, and notes where their values are in them.
  std::vector<sparse::CheckedCsr<float>> turned(std::span<const sparse::CheckedCsr<float>> weights);
  void take();

  // [groups][values of R]: the position of each value in transpose(R), for the current weights and
  // for those encoded last; after encode_update() only of the group that changes.
  std::vector<std::vector<std::int64_t>> places_, next_places_;
  std::vector<float> turned_values_;  // scratch of set_values, in the order of transpose(R)
};

}  // namespace tessera::runtime::internal
