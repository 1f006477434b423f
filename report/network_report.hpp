#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/planner/plan_network.hpp"
#include "tessera/report/network_dense.hpp"
#include "tessera/runtime/network.hpp"

namespace tessera::report {

// The costs of one run of a network as one program on a modelled machine.
struct NetworkReport {
  // Planned and modelled cycles of one kind of work of one layer, and the bytes that all tiles
  // receive in it.
  struct Line {
    planner::NetworkWork work = planner::NetworkWork::Fwd;
    std::int64_t layer = 0;  // counted from 0
    Cycles planned, cycles;
    Bytes moved;
  };
  planner::NetworkSpec spec;
  planner::NetworkPlan plan;
  device::Machine machine;
  std::vector<Line> lines;  // layer after layer; work of all layers together comes last
  DenseNetwork dense;
  Cycles cycles;
  Bytes moved, high_water;    // of all tiles together; of the fullest tile
  std::vector<float> losses;  // of each step, before its update; empty: the network has no loss

  double microseconds() const { return double(cycles.value) / machine.clock_hz * 1e6; }
};

// `cost` must be of a finished run of the network. Plans every size of a layer as a dense one.
NetworkReport network_report(const runtime::Network& network, const planner::NetworkPlan& plan,
                             const runtime::NetworkCost& cost, const device::Machine& machine,
                             std::vector<float> losses);

// Returns the first and the last loss of a run of several steps as a line; empty if there is none.
std::string losses_text(const std::vector<float>& losses);

// Returns the number of a layer from 1, or "all" for work of all layers together.
std::string layer_text(planner::NetworkWork work, std::int64_t layer);

// Returns a table, the sums, the verdict and the losses.
std::string to_text(const NetworkReport& report);

// Returns the lines as CSV with a heading.
std::string to_csv(const NetworkReport& report);

// Returns the same as a JSON object, with the members of the object `more`.
std::string to_json(const NetworkReport& report, const std::string& more);

}  // namespace tessera::report
