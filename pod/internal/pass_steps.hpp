#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/collectives/make_schedule.hpp"
#include "tessera/collectives/schedule.hpp"
#include "tessera/pod/internal/device_set.hpp"
#include "tessera/pod/internal/pod_cost.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::pod::internal {

// Returns the axis along which the rows of an operand or a result are cut.
constexpr Axis rows_axis(Operand operand) {
  return operand == Operand::S || operand == Operand::SGrad ? Axis::Y : Axis::X;
}

// One device's rectangle of an operand, for each of its groups.
struct Slice {
  Range groups, rows, cols;
  std::int64_t rows_of_group = 0;  // of the whole operand

  std::int64_t all_rows() const { return groups.size() * rows.size(); }
  std::int64_t elements() const { return all_rows() * cols.size(); }

  // Returns the row of the operand that is row r of the slice.
  std::int64_t row(std::int64_t r) const {
    return (groups.begin + r / rows.size()) * rows_of_group + rows.begin + r % rows.size();
  }
};

// Calls visit(row, column, position) for the positions of a range in a slice.
template <class Visit>
void for_each_element(const Slice& slice, Range positions, Visit&& visit) {
  const std::int64_t cols = slice.cols.size();
  for (std::int64_t p = positions.begin; p < positions.end; ++p)
    visit(slice.row(p / cols), slice.cols.begin + p % cols, p);
}

// The devices that run a collective with each other, by their index in the order of places_of().
using Members = std::vector<std::size_t>;

// Returns the groups of devices whose coordinates differ along an axis alone. Member m of a group
// has the coordinate m.
std::vector<Members> groups_along(const PodGrid& grid, const std::vector<DevicePlace>& places,
                                  Axis axis);

// The outcome of a device step for one device, beside its results.
struct DeviceOutcome {
  DeviceFigures figures;
  verify::Checksums checks;
  bool stopped = false;
};

// The results of a device step in float: elements of Q or dS row by row, or gradients. They are
// empty for devices that do not run.
using Results = std::vector<std::vector<float>>;  // [devices]

// The steps of one pass of a layer: which devices run, and what each step costs.
class PassSteps {
 public:
  PassSteps(DeviceSet& set, Pass pass, const layer::PassOptions& options,
            const DeviceOptions& target, PodLedger& ledger);

  // The devices that run: all, or some of them, evenly spread.
  const std::vector<std::size_t>& devices() const { return devices_; }
  bool is_sample() const { return devices_.size() < set_.places().size(); }

  // Returns a device's slice of an operand or a result, in one serial part.
  Slice slice_of(Operand operand, std::size_t device, std::int64_t part) const;

  // Reports the collective of an operand, if it has one, adds its step to the ledger, and returns
  // its schedule and groups in `made`, for the caller to move the data. Returns false if the caller
  // wants to stop.
  struct Collective {
    std::vector<Members> groups;  // without a schedule, single devices
    std::optional<collectives::Schedule> schedule;

    // Returns the values of member m's part of `size` values, by the schedule.
    Range part(std::int64_t size, std::size_t m) const;
  };
  bool begin_collective(Operand operand, Collective& made);

  // Runs the device step. Each device has a ledger and, if the caller wants them, checksums.
  // run() writes the results of a device, whose number is there before, and returns false if it was
  // stopped.
  using Run = std::function<bool(std::size_t, runtime::FullyConnected&, const layer::PassOptions&,
                                 device::Ledger&)>;
  bool run_devices(std::int64_t part, const Run& run, Results& results);

  // A barrier over the devices in use ends the pass.
  void end();

 private:
  const PodPlan& plan() const { return set_.plan(); }
  std::vector<std::size_t> chosen() const;
  bool begin(std::string_view name);
  void run_device(std::size_t device, std::int64_t part, const Run& run,
                  runtime::FullyConnected& layer, DeviceOutcome& outcome) const;
  std::span<const std::size_t> devices_of(int rank) const;
  void take_others(std::vector<DeviceOutcome>& outcomes, Results& results);
  void add_device_step(std::int64_t part, const std::vector<DeviceOutcome>& outcomes);

  DeviceSet& set_;
  const Pass pass_;
  const layer::PassOptions& options_;
  const DeviceOptions& target_;
  PodLedger& ledger_;
  const std::vector<std::size_t> devices_;
  std::vector<PlannedCollective> needs_;
};

}  // namespace tessera::pod::internal
