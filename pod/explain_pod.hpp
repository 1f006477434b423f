#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/pod/plan_pod.hpp"

namespace tessera::pod {

// A restriction of the grid beside the fastest one.
enum class GridKind {
  Fastest,       // no restriction
  OneDevice,     // no cut
  DataParallel,  // the batch is cut alone, over as many devices as is fastest
  CutOutputs,    // x is cut alone
  CutInputs,     // y is cut alone
  CutGroups,     // groups are cut alone; only with several groups
  WholeBatch     // the batch is cut over all devices of the pod
};

// Returns a name such as "data parallel"; the text is valid as long as the program.
std::string_view to_string(GridKind kind);

// The fastest grid of a kind; empty if none fits.
struct GridAlternative {
  GridKind kind = GridKind::Fastest;
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
  std::vector<GridAlternative>
      grids;  // the fastest first, then the others in the order of the enum
  std::vector<AlgorithmPrice> algorithms;
};

// Plans the other kinds of grids of a plan's request, and prices all algorithms of its collectives.
// Costs a search for each kind.
PodExplanation explain_pod(const PodPlan& plan, planner::PlanCache* cache = nullptr);

// Return the explanation as text and as a JSON object.
std::string to_text(const PodExplanation& explanation);
std::string to_json(const PodExplanation& explanation);

}  // namespace tessera::pod
