#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/study/cost_model.hpp"
#include "tessera/study/planned_model.hpp"
#include "tessera/study/static_model.hpp"
#include "tessera/study/timing.hpp"

namespace tessera::study {

// The subject of a question of cost: a modelled machine with the options of its planner, or
// this computer. Copies share the rates of this computer and the patterns that are drawn. One
// thread at a time uses them.
struct Target {
  std::string name;                        // as it was asked for
  std::optional<device::Machine> machine;  // none: this computer
  planner::Options options = {};           // of the machine's plans
  bool relaxes = false;                    // plans of layers that do not fit are relaxed
  PlanBy plan_by = {};                     // empty: the planner
  bool measures = false;                   // costs of this computer are measured, not forecast
  Stop is_stopped = [] { return false; };  // ends measurements
  std::shared_ptr<DrawnPatterns> patterns = std::make_shared<DrawnPatterns>();
  std::shared_ptr<std::optional<host::FoundRates>> found =
      std::make_shared<std::optional<host::FoundRates>>();

  bool is_host() const { return !machine; }
  Origin origin() const;

  // Returns the name of the machine, or the processor of this computer.
  std::string words() const;

  // Returns the rates of this computer, which are looked for once.
  const host::FoundRates& rates() const;

  // Returns what a user should know about the costs; empty: nothing.
  std::string note() const { return is_host() && !measures ? rates().note : std::string(); }

  // Returns the plans of a layer, or its forecast on this computer, or its runs if it measures.
  std::unique_ptr<CostModel> expected(const Problem& layer) const;

  // Returns the plans of a layer, or its runs on this computer, which are repeated until their
  // spread is below `spread` (MeasuredModel).
  std::unique_ptr<CostModel> seen(const Problem& layer, double spread) const;

  // Returns the plans of a layer whose pattern stays; null on this computer.
  std::unique_ptr<CostModel> fixed(const Problem& layer) const;
};

}  // namespace tessera::study
