#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan_cache.hpp"
#include "tessera/study/tables.hpp"

namespace tessera::study {

// A sweep over pods of several sizes.
struct PodSweep {
  Problem layer;
  std::string machine_name;  // as it was asked for
  device::Machine machine;
  planner::Options options;
  std::vector<std::int64_t> devices;  // of each pod
};

// Throws Error{InvalidArgument} for a number of devices that cannot be joined to a pod, and unless
// every number is greater than the one before it: efficiency is compared with the first pod.
void check_devices(const device::Machine& machine, const std::vector<std::int64_t>& devices);

// Plans the layer for every pod: with its own batch (strong scaling), and with its batch times the
// number of devices (weak scaling). The table has the time of devices and of each collective, the
// efficiency and the grid. Nothing is run. `begins` is called with the number of devices and of the
// points that are done before each of them, and ends the sweep if it returns false.
Report sweep_devices(const PodSweep& sweep, planner::PlanCache& cache,
                     const std::function<bool(std::int64_t, std::int64_t)>& begins);

}  // namespace tessera::study
