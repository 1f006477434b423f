#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/pod/plan_pod.hpp"

namespace tessera::pod {

// The fastest grid among some; no plan if none fits. The kinds are "fastest", without a
// restriction; "one device"; "data parallel", with the batch cut alone, over as many devices as is
// fastest; "x alone", "y alone" and, of several groups, "groups alone"; and "z on all", with the
// batch cut over all devices of the pod.
struct GridAlternative {
  std::string_view kind;
  std::optional<PodPlan> plan;
};

// The price of a collective of the fastest grid on one level, by one algorithm.
struct AlgorithmPrice {
  Pass pass = Pass::Fwd;
  PlannedCollective collective;
  std::size_t level = 0;
  collectives::Algorithm algorithm = collectives::Algorithm::OneWayRing;
  double seconds = 0;  // of one run
  bool chosen = false;
};

// The grids and the algorithms that a plan was chosen from.
struct PodExplanation {
  std::vector<GridAlternative> grids;  // in the order of the kinds
  std::vector<AlgorithmPrice> algorithms;
};

// Plans the other kinds of grids of a plan's request, and prices all algorithms of its collectives.
// Costs a search for each kind.
PodExplanation explain_pod(const PodPlan& plan, planner::PlanCache* cache = nullptr);

// Return the explanation as text and as a JSON object.
std::string to_text(const PodExplanation& explanation);
std::string to_json(const PodExplanation& explanation);

}  // namespace tessera::pod
