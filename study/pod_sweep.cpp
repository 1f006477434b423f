#include "tessera/study/pod_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/planner/plan_cache.hpp"
#include "tessera/pod/plan_pod.hpp"

namespace tessera::study {
namespace {

constexpr double kMicroseconds = 1e6;

// Strong scaling keeps the batch, weak scaling the batch of a device.
enum class Scaling { Strong, Weak };

std::string_view to_string(Scaling scaling) {
  switch (scaling) {
    case Scaling::Strong:
      return "strong";
    case Scaling::Weak:
      return "weak";
  }
  return "";
}

// The seconds of all collectives of one operation.
double seconds_of(const pod::PodPlan& plan, collectives::Operation operation) {
  double sum = 0;
  for (const pod::PodPass& pass : plan.passes)
    for (const pod::PlannedCollective& c : pass.collectives)
      if (c.operation == operation) sum += c.seconds * double(pass.runs(c));
  return sum;
}

double barriers(const pod::PodPlan& plan) {
  return plan.seconds() - plan.device_seconds() - plan.collective_seconds();
}

// The rows of one kind of scaling. Efficiency is that of the first pod that has a plan.
class Curve {
 public:
  Curve(const PodSweep& sweep, Scaling scaling) : sweep_(sweep), scaling_(scaling) {}

  void add(std::int64_t devices, planner::PlanCache& cache) {
    Problem problem = sweep_.layer;
    if (scaling_ == Scaling::Weak) problem.size.z *= devices;
    std::vector<Cell> row = {std::string(to_string(scaling_)), devices, problem.size.z};
    std::string note;
    std::optional<pod::PodPlan> plan;
    if (problem.size.z > kLargestSize) {
      note = "no plan: the batch is larger than a layer can have";
    } else {
      pod::PodResult result = pod::plan_pod(problem, device::pod_of(sweep_.machine, devices),
                                            sweep_.options, {}, &cache);
      plan = std::move(result.plan);
      if (!plan) note = "no plan: " + result.reason;
    }
    if (plan) add_figures(*plan, devices, row);
    if (!plan) row.resize(kColumns - 1);
    row.push_back(note);
    rows_.push_back(std::move(row));
  }

  const std::vector<std::vector<Cell>>& rows() const { return rows_; }

  std::string verdict() const {
    if (!first_seconds_) return fmt::format("{}: no pod has a plan", to_string(scaling_));
    return fmt::format("{}: efficiency {:.0f} % with {} devices", to_string(scaling_),
                       last_efficiency_ * 100, last_devices_);
  }

  static constexpr std::size_t kColumns = 14;

 private:
  void add_figures(const pod::PodPlan& plan, std::int64_t devices, std::vector<Cell>& row) {
    using collectives::Operation;
    // Work of a device and second: that of the batch, over the devices.
    const double seconds = plan.seconds() * double(devices) / double(plan.problem.size.z);
    if (!first_seconds_) first_seconds_ = seconds;
    last_efficiency_ = *first_seconds_ / seconds;
    last_devices_ = devices;
    const std::vector<Cell> figures = {plan.seconds(),
                                       plan.device_seconds(),
                                       seconds_of(plan, Operation::AllGather),
                                       seconds_of(plan, Operation::ReduceScatter),
                                       seconds_of(plan, Operation::AllReduce),
                                       barriers(plan),
                                       last_efficiency_,
                                       plan.grid.devices(),
                                       plan.serial_parts,
                                       to_string(plan.grid.parts())};
    row.insert(row.end(), figures.begin(), figures.end());
  }

  const PodSweep& sweep_;
  Scaling scaling_;
  std::vector<std::vector<Cell>> rows_;
  std::optional<double> first_seconds_;  // of a device for a column of the batch
  double last_efficiency_ = 0;
  std::int64_t last_devices_ = 0;
};

Table table_of(const std::vector<std::vector<Cell>>& rows) {
  Table table{.key = "points",
              .title = "Planned time by devices",
              .note =
                  "Microseconds of all passes. Strong keeps the batch, weak multiplies it "
                  "by the devices. Efficiency is the work of a device and second, "
                  "compared with the first row.",
              .columns = {{"scaling", "scaling", -1, 1, 8},
                          {"devices", "devices", -1, 1, 8},
                          {"batch", "batch", -1, 1, 11},
                          {"seconds", "us", 1, kMicroseconds, 11},
                          {"device_seconds", "devices us", 1, kMicroseconds, 11},
                          {"all_gather_seconds", "gather", 1, kMicroseconds, 9},
                          {"reduce_scatter_seconds", "sum", 1, kMicroseconds, 9},
                          {"all_reduce_seconds", "all-reduce", 1, kMicroseconds, 11},
                          {"barrier_seconds", "barrier", 1, kMicroseconds, 9},
                          {"efficiency", "eff. %", 1, 100, 8},
                          {"devices_used", "used", -1, 1, 7},
                          {"serial_parts", "serial", -1, 1, 7},
                          {"grid", "grid", -1, 1, 18},
                          {"note", "note", -1, 1, 0}},
              .rows = rows};
  table.chart = {.kind = Chart::Kind::Lines,
                 .label = "Efficiency, %",
                 .x = "devices",
                 .y = {"efficiency"},
                 .series = {"scaling"},
                 .is_log = true};
  return table;
}

}  // namespace

void check_devices(const device::Machine& machine, const std::vector<std::int64_t>& devices) {
  for (const std::int64_t count : devices) device::pod_of(machine, count);
  if (std::ranges::adjacent_find(devices, std::greater_equal()) != devices.end())
    throw Error(
        ErrorCode::InvalidArgument,
        "sweep: every number of devices must be greater than the one before it, as in 1,4,16");
}

Report sweep_devices(const PodSweep& sweep, planner::PlanCache& cache,
                     const std::function<bool(std::int64_t, std::int64_t)>& begins) {
  Curve curves[] = {{sweep, Scaling::Strong}, {sweep, Scaling::Weak}};
  const std::int64_t points = 2 * std::ssize(sweep.devices);
  std::int64_t done = 0;
  bool goes_on = true;
  for (Curve& curve : curves)
    for (const std::int64_t devices : sweep.devices) {
      goes_on = goes_on && begins(devices, done++);
      if (goes_on) curve.add(devices, cache);
    }
  std::vector<std::vector<Cell>> rows = curves[0].rows();
  rows.insert(rows.end(), curves[1].rows().begin(), curves[1].rows().end());
  return {.name = "sweep_devices",
          .title = "Sweep over devices",
          .subtitle = fmt::format("{}; {}", layer_words(sweep.layer), sweep.machine.name),
          .is_complete = std::ssize(rows) == points,
          .facts = {{"layer", to_string(sweep.layer)},
                    {"machine", sweep.machine_name},
                    {"how", "modelled"}},
          .tables = {table_of(rows)},
          .verdict = curves[0].verdict() + "; " + curves[1].verdict()};
}

}  // namespace tessera::study
