#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"
#include "tessera/collectives/make_schedule.hpp"
#include "tessera/device/pod.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/pod/pod_grid.hpp"

namespace tessera::pod {

// In a second, for texts.
inline constexpr double kMicroseconds = 1e6;

// The data that a collective gathers or sums.
enum class Operand { S, Q, SGrad, QGrad, Gradient };

// Returns "S", "Q", "dS", "dQ" or "dR"; the text is valid as long as the program.
std::string_view to_string(Operand operand);

// Collectives run before or after the device step of each serial part of the batch, or once, after
// the last one.
enum class When { Before, After, Once };

// One collective of a pass, which all groups of devices along one axis run at the same time. The
// sizes are those of the devices with the largest shares.
struct PlannedCollective {
  collectives::Operation operation = collectives::Operation::AllGather;
  Operand operand = Operand::S;
  Axis axis = Axis::X;
  When when = When::Before;
  std::vector<collectives::LevelPart> levels;  // one for each level of the pod
  std::int64_t elements = 0;                   // that each member has, or gets, in all
  double seconds = 0;                          // of one run
  std::vector<double> level_bytes;             // over the links of each level in one run

  friend bool operator==(const PlannedCollective&, const PlannedCollective&) = default;
};

// The cost of one pass. A pass runs once for each serial part of the batch, and a barrier over the
// devices in use ends it.
struct PodPass {
  Pass pass = Pass::Fwd;
  std::int64_t serial_parts = 1;
  Cycles cycles;                               // of the slowest device in one serial part
  Cycles add_cycles;                           // that add gradients to those of the part before
  std::vector<PlannedCollective> collectives;  // in their order
  double device_seconds = 0, collective_seconds = 0, barrier_seconds = 0;  // in all

  friend bool operator==(const PodPass&, const PodPass&) = default;
  double seconds() const { return device_seconds + collective_seconds + barrier_seconds; }

  // Returns how often a collective runs.
  std::int64_t runs(const PlannedCollective& c) const {
    return c.when == When::Once ? 1 : serial_parts;
  }
};

// The plan of the devices whose shares have one size.
struct DeviceShape {
  Dims size;                 // of one serial part
  std::int64_t devices = 0;  // with this size
  planner::Plan plan;

  friend bool operator==(const DeviceShape&, const DeviceShape&) = default;
};

// A plan states how a layer is cut over the devices of a pod, how each device runs its part, and
// what that costs. It is a plain value.
//
// Share i of a dimension is share_of(size, grain, parts, i), with the block's sides as grains of x
// and y; no share is empty. Device (i, j, k) multiplies R[i][j] by S[j][k]. Between passes it keeps
// part i of its slice of S, and part j of its slice of Q, cut by run_schedule. So the result of
// a layer has the form of the operand of the next one, whose grid has x and y exchanged.
struct PodPlan {
  Problem problem;
  device::Pod pod;
  planner::Options options;  // of the plans of devices, see device_options()
  PodGrid grid;
  std::int64_t serial_parts = 1;    // of the batch, one after the other
  std::vector<DeviceShape> shapes;  // the largest first
  std::vector<PodPass> passes;
  Bytes buffer;  // that collectives need on a tile besides the resident data

  friend bool operator==(const PodPlan&, const PodPlan&) = default;

  // Returns the time of all passes, their parts on devices, and their collectives.
  double seconds() const;
  double device_seconds() const;
  double collective_seconds() const;
};

// Returns the shape of a device's part, of one serial part of the batch.
Dims size_at(const PodPlan& plan, const Dims& at);

// Returns the shape with this size. Throws Error{InvalidArgument} if there is none.
const DeviceShape& shape_at(const PodPlan& plan, const Dims& at);

// Returns the problem of a device with a part of this size.
Problem device_problem(const Problem& problem, const Dims& size);

// Returns the options of the plan of a device: those of the pod's plan, with the patterns of all
// parts of R that the devices of a grid with these parts have.
planner::Options device_options(planner::Options options, const Dims& parts);

// Returns the plan as text: the grid, the shapes, then every pass with its device step and its
// collectives, one line each.
std::string to_string(const PodPlan& plan);

// Returns the plan as JSON text with every field by its name. The plans of devices are those of
// planner::plan_to_json.
std::string pod_plan_to_json(const PodPlan& plan);

// Reads the text of pod_plan_to_json() back. The text is not trusted: throws Error{BadInput} with
// the place of an unknown or missing key, a value of a wrong type or out of range, a grid that does
// not suit the pod, a missing shape, and a cost other than that of the grid and the devices' plans.
PodPlan pod_plan_from_json(std::string_view text, std::string_view where);

}  // namespace tessera::pod
