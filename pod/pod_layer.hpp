#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/layer/layer.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/pod/pod_ledger.hpp"
#include "tessera/pod/pod_plan.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::pod {

// The order in which this computer runs the devices of a pod. Results and ledgers do not depend on
// it.
enum class DeviceOrder {
  OneAfterAnother,  // with all threads on one device, and memory for one device of each shape; R is
                    // encoded again for every device in every pass, unless all have the same part
  SideBySide        // with a thread for each device, and memory for all of them
};

// A bit that is flipped on one device.
struct DeviceFault {
  std::int64_t device = 0;
  device::Fault fault;
};

// The options of layer::PassOptions that only a pod takes.
struct DeviceOptions : layer::TargetOptions {
  // Flips a bit on one device in the first serial part of this run. Throws Error{InvalidArgument}
  // for a device that is not in use, or unless the layer was made in Isolate mode.
  std::optional<DeviceFault> fault = {};

  // If it is not null, it is set to the place that the fault struck, and to nothing if the program
  // has no such step or the tile did not use that much memory in it.
  std::optional<device::Struck>* struck = nullptr;

  // If it is not 0, only so many devices run, evenly spread over those in use, and the others are
  // taken to be as fast as the slowest of them. For a layer whose devices differ by their data
  // alone. No result is written. Throws Error{InvalidArgument} for more devices than are in use.
  std::int64_t devices_simulated = 0;

  // If it is not null, each of these ranks runs some of the devices, and their results travel to
  // all. Every rank makes the same calls with the same operands and options and has the results,
  // ledgers and checks of one process, bit for bit. Throws Error{InvalidArgument} together with a
  // fault, and on every rank if the ranks run other devices.
  distributed::Communicator* ranks = nullptr;
};

// A layer (layer/layer.hpp) on a pod of modelled machines.
//
// The data of each device move by the schedules of the plan's collectives; partial sums travel in
// the layer's type and are added in float, in the order of devices, and rounded once. Results have
// the same bits for any number of threads, either order of devices and both exchange modes.
//
// The message of a misfit names the device. Changes of pattern or values cost set_weights.
//
// The cost of a pass is modelled time and counted bytes. `progress` of the options is called before
// every step of the pod. `self_check` has the sums of all devices; a wrong result is
// Error{CheckFailed}, which names the device, and with `repair` that device runs once more.
class PodLayer : public layer::LayerOf<PodLedger> {
 public:
  // Builds the programs of all devices, one for each shape. The executor must outlive the layer.
  // Throws Error{InvalidArgument} for a plan whose grid or shapes do not suit its problem and pod,
  // and Error{LimitExceeded} as FullyConnected does.
  PodLayer(const PodPlan& plan, device::ExchangeMode mode, DeviceOrder order, Executor& executor);

  const PodPlan& plan() const;

  // Returns the devices in use, in the order of the ledger.
  const std::vector<DevicePlace>& places() const;

  // Returns the most memory that any tile of a device, given by its index in places(), needs in any
  // pass.
  Bytes high_water(std::size_t device) const;

 private:
  struct State;
  State& state() const;
};

}  // namespace tessera::pod
