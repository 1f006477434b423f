#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
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

// The version of the JSON form of HostPlan. It is raised if a reader of the old form would misread
// the new one.
inline constexpr std::int64_t kHostPlanSchemaVersion = 1;

// The sides of the square blocks for which the host has kernels.
inline constexpr std::int64_t kHostBlockSides[] = {1, 4, 8, 16};

// One representation of R, with the forecast of each pass over all groups.
struct HostWay {
  BlockShape block;
  bool is_dense = false;   // R is stored with its zeros; `block` is then ignored
  bool is_packed = false;  // Fwd reads packed rows (codelets/packed_rows.hpp), for few columns
  std::vector<std::pair<Pass, host::HostForecast>> passes;

  // Returns the name of the representation: "4x4" or "dense".
  std::string name() const;

  // Returns the form in which a pass reads R, as reports name it: "sparse", "packed" or "dense".
  std::string_view method(Pass pass) const;

  // Returns the forecast of all passes together, in seconds.
  double seconds() const;
};

// The forecasts for a layer on this computer, as data.
struct HostPlan {
  Problem problem;
  std::string cpu_model;
  host::HostCpu cpu;
  int threads = 1;         // the forecasts are for this many
  host::FoundRates found;  // the rates behind the forecasts

  // The cells of each pass, for one group with R in its own block.
  std::vector<std::pair<Pass, host::HostCells>> cells;

  // R in its own block, in larger square blocks that its own divides, and dense.
  std::vector<HostWay> ways;

  // Returns the representation with the shortest forecast.
  const HostWay& fastest() const;
};

// Forecasts a layer on all cores of `cpu` from the rates `found`. `blocks_as` returns the number of
// blocks of a shape that the pattern occupies. No pass is run.
HostPlan plan_on_host(const Problem& problem, const host::HostCpu& cpu,
                      const host::FoundRates& found,
                      const std::function<double(BlockShape)>& blocks_as);

// Returns one screen of text: the source of the rates if they are not this computer's own, the
// layer, the computer, the cells and the forecasts.
std::string to_text(const HostPlan& plan);

// Returns the plan as JSON that obeys docs/host_plan.schema.json. Equal plans give equal bytes.
// Thread-safe.
std::string to_json(const HostPlan& plan);

// Returns the forecasts as CSV with the heading form,pass,seconds.
std::string to_csv(const HostPlan& plan);

// Returns a table of rates for people.
std::string rates_text(const host::HostRates& rates);

// Returns the path of the file with the rates of this computer: "tessera/host_rates.json" in
// $XDG_CACHE_HOME, else in $HOME/.cache; an empty path if neither variable is set.
std::string host_rates_path();

}  // namespace tessera::report
