#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/weights.hpp"
#include "tessera/verify/self_check.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::tools {

using Files = std::vector<std::pair<std::string, std::string>>;  // {name, bytes}

// The part of a group that this process has: rows of Q and of S, and the rows and columns of R
// whose gradients it has, in elements of the group.
struct GroupShare {
  std::int64_t group = 0;
  Range outputs, inputs;
  Range rows, columns;
};

// The outcome of a pass.
struct PassOutcome {
  Pass pass = Pass::Fwd;
  bool is_finished = true;                      // false: an interrupt or the time limit ended it
  std::optional<verify::Verdict> verdict = {};  // no value: the results were not checked
  std::optional<verify::Checksums> self_check = {};
  std::string fault = {};               // the outcome of the last fault; empty: there was none
  std::vector<std::string> notes = {};  // on faults and self-checks, in the order of the runs
};

// The fault of a run, whose place is left in `struck`.
struct FaultOfRun {
  const FaultRequest* request = nullptr;  // null: none
  std::optional<device::Struck>* struck = nullptr;
};

// A target runs a layer: it knows how a pass is run and measured, which rows of operands and
// results this process has, and where the outcome goes. By default it has all rows.
class PassTarget {
 public:
  // Both must outlive the target.
  PassTarget(const layer::Layer& layer, const Weights& weights)
      : weights_(weights), layer_(layer) {}
  virtual ~PassTarget() = default;

  const layer::Layer& layer() const { return layer_; }

  // Runs a pass as often as it is measured. Returns false if options.stop ended it.
  virtual bool run(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
                   const FaultOfRun& fault) = 0;

  // Adds a pass to the report. One that did not finish has no results.
  virtual void take(PassOutcome&& outcome) = 0;

  // Returns true if no further step, pass or check is to begin. After an interrupt no step and no
  // pass begins in any case.
  virtual bool is_over() const { return false; }

  // Returns what this process has, by group.
  virtual std::vector<GroupShare> shares() const;

  // Returns the rows of R that the results of a pass are compared with: those of the share, for
  // GradA of the transpose.
  virtual sparse::CheckedCsr<float> matrix(Pass pass, const GroupShare& share) const;

  // Return what all processes found, and put their results together on the first one: rows of an
  // operand, and the gradients of each group, inside the layer. Collective if there are several.
  virtual verify::Verdict of_all(const verify::Verdict& own) { return own; }
  virtual bool has_all() const { return true; }
  virtual void collect(Range GroupShare::*, layer::ConstView, layer::View) {}
  virtual std::vector<sparse::Csr<float>> collect(std::vector<sparse::Csr<float>> gradients);

 protected:
  const Weights& weights_;

 private:
  const layer::Layer& layer_;
};

// Runs a pass of a layer whose passes cost a `Cost`. Returns false if options.stop ended it.
template <class Cost>
bool run_pass(layer::LayerOf<Cost>& layer, Pass pass, const layer::Operands& o,
              const layer::PassOptions& options, Cost& cost) {
  return with_type(o.in.type, [&]<class T>(T) {
    if (pass == Pass::Fwd)
      return layer.template forward<T>(o.in.as<T>(), o.out.as<T>(), options, cost);
    if (pass == Pass::GradA)
      return layer.template grad_a<T>(o.in.as<T>(), o.out.as<T>(), options, cost);
    return layer.template grad_w<T>(o.in.as<T>(), o.in_s.as<T>(), o.gradients, options, cost);
  });
}

}  // namespace tessera::tools
