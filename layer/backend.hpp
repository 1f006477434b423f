#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/one_caller.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/layer/change_part.hpp"
#include "tessera/layer/pass_options.hpp"
#include "tessera/layer/prepared_update.hpp"
#include "tessera/layer/view.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/value_range.hpp"
#include "tessera/verify/repair.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::layer {

// The operands and results of a pass, the groups one below the other.
//
//   pass   in                in_s            out              gradients
//   Fwd    S [g * y][z]                      Q [g * x][z]
//   GradA  dQ [g * x][z]                     dS [g * y][z]
//   GradW  dQ [g * x][z]     S [g * y][z]                     of all values
struct Operands {
  ConstView in, in_s;
  View out;
  std::span<float> gradients;  // group after group, in the order of weights(group).values
};

// The outcome of a pass.
struct Outcome {
  bool finished = true;  // false: options.stop ended the pass
  double seconds = 0;    // measured on this computer, modelled on a machine
};

// Describes a layer: every call is checked from this.
struct LayerFacts {
  Problem problem;  // z: with a batch cut over ranks, the columns of this rank
  std::array<bool, 3> passes = {true, true, true};  // by Pass
  bool has_weights = false;
  std::int64_t values = 0;        // of all groups: gradients of GradW
  std::int64_t output_rows = 0;   // of Q and dQ, all groups: x of the problem, or a rank's part
  std::int64_t input_rows = 0;    // of S and dS
  bool any_batch = false;         // true: a call has any number of columns; false: problem.size.z
  bool works_on_results = false;  // bias, activation, derivative and sum of PassOptions
  bool changes_pattern = true;    // set_weights, update_weights, prepare_update, commit
};

// Computes what a Layer is asked for. A target derives from BackendOf with its type of cost; calls
// reach it checked.
class Backend {
 public:
  Backend() = default;
  Backend(Backend&&) = default;
  virtual ~Backend() = default;

  virtual LayerFacts facts() const = 0;

  // Replaces the weights of all groups, which check_weights() has passed. Returns what did not fit.
  virtual std::optional<partitioner::Misfit> set_weights(
      std::vector<sparse::CheckedCsr<float>> weights) = 0;

  // Prepares a change of a group's pattern and makes it. By default neither is called: a target
  // whose pattern may change (facts()) overrides both. commit() gets what prepare() of this backend
  // returned last, or before without a new `version` since, and that fits.
  virtual std::unique_ptr<PreparedUpdate::State> prepare(const sparse::PatternChange& change,
                                                         std::int64_t group);
  virtual void commit(PreparedUpdate::State& update);

  // Does both, which may be cheaper. Returns what did not fit.
  virtual std::optional<partitioner::Misfit> update_weights(const sparse::PatternChange& change,
                                                            std::int64_t group) {
    const std::unique_ptr<PreparedUpdate::State> update = prepare(change, group);
    if (!update->misfit) commit(*update);
    return std::move(update->misfit);
  }

  // Sets the values of a group, whose number and range were checked.
  virtual void set_values(std::span<const float> values, std::int64_t group) = 0;

  // Lets `change` change a group's values, part by part; here all at once, in a copy.
  virtual void change_values(const ChangePart& change, std::int64_t group) {
    const std::vector<float>& now = weights_of(group).values;
    changed_.assign(now.begin(), now.end());
    change(changed_, 0);
    sparse::check_range(changed_, facts().problem.data_type);
    set_values(changed_, group);
  }

  // Returns the weights of a group as they were given and changed since, not rounded.
  virtual const sparse::Csr<float>& weights_of(std::int64_t group) const = 0;

  // Returns the rounding that the results of a pass of the layer may have, for the planned number
  // of columns.
  virtual verify::Rounding rounding(Pass pass) const = 0;

  // Checks, runs and repairs a pass, and keeps its cost.
  virtual Outcome run_and_keep_cost(Pass pass, const Operands& operands,
                                    const PassOptions& options) = 0;

  // Throws Error{InvalidArgument} for options that can stop a pass, for calls that return its cost.
  static void check_is_whole(Pass pass, const PassOptions& options);

  OneCaller caller;

  // The number of the weights: a new one after every change of them, and after what spoils a
  // prepared change.
  std::int64_t version = new_number();

 protected:
  // Returns the name of a pass's call: "forward", "grad_a" or "grad_w".
  static std::string_view call_of(Pass pass);

  // Begins a pass, which by default may change the layer. Throws Error{InvalidArgument} while
  // another call is running.
  [[nodiscard]] virtual OneCaller::Call begin(Pass pass) { return caller.enter(call_of(pass)); }

  // Throws Error{InvalidArgument} for operands of another type or shape or without memory, a pass
  // that the layer does not have, a call before the first weights, results that share memory with
  // operands, and options that the target does not take. Allocates nothing. O(1) for operands with
  // contiguous rows.
  void check(Pass pass, const Operands& operands, const PassOptions& options) const;

 private:
  // Returns true for options of this kind of target.
  virtual bool takes(const TargetOptions&) const { return false; }

  std::vector<float> changed_;  // scratch of change_values
};

// A backend whose passes cost a CostT.
template <class CostT>
class BackendOf : public Backend {
 public:
  // Checks, runs and repairs a pass. Returns false if options.stop ended it. Overwrites `cost`.
  bool run(Pass pass, const Operands& operands, const PassOptions& options, CostT& cost) {
    const OneCaller::Call call = begin(pass);
    return run_in_call(pass, operands, options, cost);
  }

  Outcome run_and_keep_cost(Pass pass, const Operands& operands, const PassOptions& options) final {
    const OneCaller::Call call = begin(pass);  // also while the cost is read
    const bool finished = run_in_call(pass, operands, options, last_cost_);
    return {finished, seconds(last_cost_)};
  }

 protected:
  // Runs a pass whose arguments were checked.
  virtual bool compute(Pass pass, const Operands& operands, const PassOptions& options,
                       CostT& cost) = 0;

  // Returns true if compute() repairs what is wrong itself, in parts of a pass.
  virtual bool repairs_parts() const { return false; }

  // Returns the time of a pass, measured or modelled.
  virtual double seconds(const CostT& cost) const = 0;

 private:
  bool run_in_call(Pass pass, const Operands& operands, const PassOptions& options, CostT& cost) {
    check(pass, operands, options);
    if (!options.repair || repairs_parts()) return compute(pass, operands, options, cost);
    return verify::run_and_repair(
        options, [&](const PassOptions& once) { return compute(pass, operands, once, cost); });
  }

  CostT last_cost_;
};

}  // namespace tessera::layer
