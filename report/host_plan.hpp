#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cost.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/rates.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::report {

// Of the JSON below; raised when a reader of the old form would misread the new one.
inline constexpr std::int64_t kHostPlanSchemaVersion = 1;

// Sides of the square blocks that this computer has kernels for.
inline constexpr std::int64_t kHostBlockSides[] = {1, 4, 8, 16};

// One way to hold R, and what every pass over all groups is then expected to take.
struct HostWay {
  BlockShape block;
  bool is_dense = false;  // R with its zeros; the block means nothing
  std::vector<std::pair<Pass, host::HostForecast>> passes;

  std::string name() const;  // "4x4" or "dense"
  double seconds() const;    // of all passes
};

// What is to be expected of a layer on this computer, as data.
struct HostPlan {
  Problem problem;
  std::string cpu_model;
  host::HostCpu cpu;
  int threads = 1;                                      // that forecasts are for
  host::FoundRates found;                               // that forecasts are made from
  std::vector<std::pair<Pass, host::HostCells>> cells;  // of the first group, R as it is
  std::vector<HostWay> ways;  // as it is, in larger blocks that its own divide, dense

  const HostWay& fastest() const;
};

// For all cores of `cpu`. `blocks_as` tells how many blocks of a shape it takes to hold the
// pattern. Runs nothing.
HostPlan plan_on_host(const Problem& problem, const host::HostCpu& cpu,
                      const host::FoundRates& found,
                      const std::function<double(BlockShape)>& blocks_as);

// One screen of text: where the rates come from when they are not this computer's own, layer,
// computer, cells and forecasts.
std::string to_text(const HostPlan& plan);

// The same as JSON, as docs/host_plan.schema.json says. Deterministic; any number of threads.
std::string to_json(const HostPlan& plan);

}  // namespace tessera::report
