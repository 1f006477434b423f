#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/pod/internal/device_weights.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/runtime/fully_connected.hpp"

namespace tessera::pod::internal {

// The devices of a pod on this computer. In the order OneAfterAnother one layer serves all devices
// of a shape and takes the weights of each in turn; in the order SideBySide each has a layer. Ranks
// share the devices, by their parts of R.
class DeviceSet {
 public:
  DeviceSet(const PodPlan& plan, device::ExchangeMode mode, DeviceOrder order, Executor& executor,
            DeviceRanks ranks);

  const PodPlan& plan() const { return plan_; }
  const std::vector<DevicePlace>& places() const { return places_; }

  // Returns the cell of a device.
  std::size_t cell_of(std::size_t device) const;
  const Cell& cell(std::size_t index) const { return cells_[index]; }

  // Returns the rank that runs a device.
  int rank_of(std::size_t device) const { return rank_of_[device]; }
  const DeviceRanks& ranks() const { return ranks_; }

  // Takes the weights of all groups. Returns the first misfit; the devices then have the weights
  // that they had before.
  std::optional<PodMisfit> set_weights(std::span<const sparse::CheckedCsr<float>> weights);

  // Calls run(device, layer) for those of the devices that this rank runs, with the weights of each
  // in its layer.
  void for_each(std::span<const std::size_t> devices,
                const std::function<void(std::size_t, runtime::FullyConnected&)>& run);

  // Returns the most memory that a tile of a device needs in any pass.
  Bytes high_water(std::size_t device) const;

 private:
  struct Worker {
    std::unique_ptr<Executor> own;  // in the order SideBySide
    std::unique_ptr<runtime::FullyConnected> layer;
    std::optional<std::size_t> loaded;  // the cell whose weights it has
  };

  void assign_ranks();
  bool is_mine(std::size_t device) const { return rank_of_[device] == ranks_.rank; }
  void visit(std::span<const std::size_t> devices, const std::function<void(std::size_t)>& run);
  std::optional<PodMisfit> encode(const std::vector<Cell>& cells);
  std::optional<partitioner::Misfit> load(std::size_t device, const std::vector<Cell>& cells);

  const PodPlan plan_;
  const DeviceOrder order_;
  Executor& executor_;
  std::vector<DevicePlace> places_;
  const DeviceRanks ranks_;
  std::vector<int> rank_of_;            // [devices]
  std::vector<std::size_t> worker_of_;  // [devices]
  std::vector<Worker> workers_;
  std::vector<Cell> cells_;  // [g][x][y] of the grid
};

}  // namespace tessera::pod::internal
