#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/pod/internal/pod_cost.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/part.hpp"

namespace tessera::pod::internal {

// The part of R that some devices have in common: those with the same g, x and y.
struct Cell {
  std::vector<sparse::Part> runs;                // [groups of the cell]
  std::vector<sparse::CheckedCsr<float>> parts;  // [groups of the cell]

  std::int64_t values() const;
};

// Cuts the matrices of all groups for a grid: [g][x][y] of its parts. O(values + block rows * parts
// of y).
std::vector<Cell> cut_weights(const Problem& problem, const Dims& parts,
                              std::span<const sparse::CheckedCsr<float>> weights);

// The weights of all groups, whole and cut for the devices, and the number by which a device knows
// them.
struct CutWeights {
  std::vector<sparse::CheckedCsr<float>> groups;
  std::vector<Cell> cells;  // [g][x][y] of the grid
  std::int64_t number = 0;
};

// The devices of a pod on this computer. In the order OneAfterAnother one layer serves all devices
// of a shape and takes the weights of each in turn; in the order SideBySide each has a layer.
class DeviceSet {
 public:
  DeviceSet(const PodPlan& plan, device::ExchangeMode mode, DeviceOrder order, Executor& executor);

  const PodPlan& plan() const { return plan_; }
  const std::vector<DevicePlace>& places() const { return places_; }

  LevelPrices& prices() { return prices_; }

  // Return the weights, which are empty before the first take(); the part of them that a device
  // has; the largest number of values of a device, which a sum of gradients moves; and the number
  // of values of the groups before this one.
  const std::vector<sparse::CheckedCsr<float>>& weights() const { return weights_.groups; }
  const Cell& cell(std::size_t device) const { return weights_.cells[cell_of(device)]; }
  std::int64_t most_values() const;
  std::int64_t first_value(std::int64_t group) const;

  // Cuts the weights of all groups and encodes them on every device. Returns the first misfit,
  // whose message names the device; without one, take() makes them the weights, and cannot fail.
  // Until then, and after a misfit, the devices run with the weights that they had.
  std::optional<partitioner::Misfit> encode(std::vector<sparse::CheckedCsr<float>> weights,
                                            CutWeights& next);
  void take(CutWeights&& next) { weights_ = std::move(next); }

  // Calls run(device, layer) for the given devices, with the weights of each in its layer.
  void for_each(std::span<const std::size_t> devices,
                const std::function<void(std::size_t, runtime::FullyConnected&)>& run);

  // Returns the most memory that a tile of a device needs in any pass.
  Bytes high_water(std::size_t device) const;

 private:
  struct Worker {
    std::unique_ptr<Executor> own;  // in the order SideBySide
    std::unique_ptr<runtime::FullyConnected> layer;
    std::int64_t number = 0;  // of the weights that it has, a part of them; 0: none
    std::size_t cell = 0;
  };

  std::size_t cell_of(std::size_t device) const;
  std::size_t worker_of(std::size_t device) const;
  void visit(std::span<const std::size_t> devices, const std::function<void(std::size_t)>& run);
  std::optional<partitioner::Misfit> load(std::size_t device, const CutWeights& weights);

  const PodPlan plan_;
  LevelPrices prices_;
  const DeviceOrder order_;
  Executor& executor_;
  std::vector<DevicePlace> places_;
  std::vector<std::size_t> shape_of_;  // [devices]
  std::vector<Worker> workers_;        // [shapes] or [devices]
  CutWeights weights_;
};

}  // namespace tessera::pod::internal
