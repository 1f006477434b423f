#pragma once

#include <optional>
#include <string>

#include "tessera/base/pattern_stats.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/pod/pod_plan.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/report/host_plan.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::study {

// A plan with the facts that it was made from.
struct PlanAnswer {
  planner::PlannedLayer layer;
  std::optional<PatternStats> stats = {};  // of the pattern; no value: it is random
  sparse::Csr<double> pattern = {};        // its elements, with values 1
  std::string relaxation = {};             // description of the relaxed request; empty: not relaxed
  std::string block_choice = {};           // the block that was chosen and its competitors
};

// Returns the plan and the verdict, for people. `explain`: with what each term depends on, the
// plans that came next, the probability that an unknown pattern spills, and the dense plan.
std::string to_text(const PlanAnswer& answer, bool explain);

// Returns the file that plans are read from, with notes (plan_notes.hpp).
std::string to_json(const PlanAnswer& answer, bool explain);

// Returns the planned steps of the devices of a pod as CSV, in their order: the collectives, the
// work of the slowest device, and the barrier of each pass.
std::string to_csv(const pod::PodPlan& plan);

// The forecasts of a layer on this computer and their verdict.
struct HostAnswer {
  report::HostPlan plan;
  report::DenseComparison verdict;
  std::string block_choice = {};
};

// Forecasts a layer. `ones` has the elements of its pattern; nullptr: it is random.
HostAnswer answer_on_host(const Problem& problem, const sparse::Csr<double>* ones,
                          const host::FoundRates& found);

std::string to_text(const HostAnswer& answer);
std::string to_json(const HostAnswer& answer);

}  // namespace tessera::study
