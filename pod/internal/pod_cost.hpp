#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "tessera/collectives/schedule_cost.hpp"
#include "tessera/pod/pod_plan.hpp"

namespace tessera::pod::internal {

// A collective of a pass before its grid is laid out on the levels of a pod.
struct CollectiveNeed {
  collectives::Operation operation = collectives::Operation::AllGather;
  Operand operand = Operand::S;
  Axis axis = Axis::X;
  std::int64_t elements = 0;
  std::int64_t runs = 1;  // serial parts, or 1 if it is run after the last one
  enum class When { Before, After, Once } when = When::Before;
};

// Returns the largest share of every dimension for the parts of a grid, with the batch cut into
// serial parts.
Dims largest_share(const Problem& problem, const Dims& parts, std::int64_t serial_parts);

// Returns share `at` of every dimension, without the cut into serial parts.
struct Shares {
  Range g, x, y, z;
  Dims size() const { return {g.size(), x.size(), y.size(), z.size()}; }
};
Shares shares_at(const Problem& problem, const Dims& parts, const Dims& at);

// Returns true if no share is empty and no count has a smaller one with as large shares.
bool suits(const Problem& problem, const Dims& parts);

// Returns the collectives of a pass on devices whose largest share is `share`, for R with
// `nonzeros` elements there. Slices stay gathered for GradW if the batch is in one part.
std::vector<CollectiveNeed> collectives_of(const Problem& problem, Pass pass, const Dims& parts,
                                           std::int64_t serial_parts, const Dims& share,
                                           std::int64_t nonzeros);

// Returns the non-zeros that a device with a share of this size has on average.
std::int64_t expected_nonzeros(const Problem& problem, const Dims& share);

// The prices of gathers and sums on the levels of one pod. Keeps its answers, so one thread at a
// time may use it.
class LevelPrices {
 public:
  explicit LevelPrices(const device::Pod& pod) : pod_(pod) {}

  // Returns the price by each algorithm of a collective along an axis of a cut of a level.
  const std::vector<collectives::LevelCost>& at(std::size_t level, const LevelCut& cut, Axis axis);

  // Returns the cheapest algorithm for parts of so many bytes, the first among equal ones.
  const collectives::LevelCost& cheapest(std::size_t level, const LevelCut& cut, Axis axis,
                                         double part_bytes);

  const device::Pod& pod() const { return pod_; }

 private:
  using Key = std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t>;
  const device::Pod& pod_;
  std::map<Key, std::vector<collectives::LevelCost>> known_;
};

// Returns the collective with its algorithms, time and bytes, and the bytes that a device needs to
// receive contributions to sums.
struct PricedCollective {
  PlannedCollective collective;
  double buffer_bytes = 0;
};
PricedCollective priced(LevelPrices& prices, const PodGrid& grid, const CollectiveNeed& need,
                        std::int64_t element_bytes);

// Returns one barrier over the devices in use.
double barrier_seconds(const device::Pod& pod, const PodGrid& grid);

// Returns all distinct sizes of the devices' parts, the largest first, with the number of devices.
std::vector<DeviceShape> shapes_of(const Problem& problem, const Dims& parts,
                                   std::int64_t serial_parts);

// Computes passes and buffer of a plan from its other fields.
void add_costs(LevelPrices& prices, PodPlan& plan);

}  // namespace tessera::pod::internal
