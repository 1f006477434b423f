#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "tessera/collectives/schedule_cost.hpp"
#include "tessera/pod/pod_plan.hpp"

namespace tessera::pod::internal {

// Returns the sum of part(item) over all items.
template <class Item, class Part>
double sum_of(const std::vector<Item>& items, Part part) {
  double sum = 0;
  for (const Item& item : items) sum += std::invoke(part, item);
  return sum;
}

// Returns share `at` of every dimension, without the cut into serial parts.
struct Shares {
  Range g, x, y, z;
  Dims size() const { return {g.size(), x.size(), y.size(), z.size()}; }
};
Shares shares_at(const Problem& problem, const Dims& parts, const Dims& at);

// Returns the size of share `at`, by default of the largest one, for the parts of a grid, with the
// batch cut into serial parts.
Dims share_size(const Problem& problem, const Dims& parts, std::int64_t serial_parts,
                const Dims& at = {0, 0, 0, 0});

// Returns the blocks that a layer has in each dimension, the last of which may be smaller.
Dims blocks_of(const Problem& problem);

// Returns true if no share is empty and no count has a smaller one with as large shares.
bool suits(const Problem& problem, const Dims& parts);

// Throws Error{InvalidArgument} for a plan whose grid does not suit its problem and pod, or with
// serial parts that leave a share empty.
void check_cut(const PodPlan& plan);

// Returns the collectives of a pass, before they have levels and prices. `nonzeros` are the most
// elements of R that a device has; no value: those that the largest share has on average. Slices
// stay gathered for GradW if the batch is in one part.
std::vector<PlannedCollective> collectives_of(const Problem& problem, Pass pass, const Dims& parts,
                                              std::int64_t serial_parts,
                                              std::optional<std::int64_t> nonzeros = {});

// The price of a collective on one level of a grid, by one algorithm.
struct LevelPrice {
  collectives::Algorithm algorithm = collectives::Algorithm::OneWayRing;
  double seconds = 0, link_bytes = 0;  // of one run
  double buffer = 0;                   // bytes that a device needs to receive contributions to sums
};

// The prices of gathers and sums on the levels of one pod. Keeps its answers, so one thread at a
// time may use it.
class LevelPrices {
 public:
  explicit LevelPrices(const device::Pod& pod) : pod_(pod) {}

  // Return the price by each algorithm of a collective whose axis is cut on the level, and the
  // least one, the first among equal ones.
  std::vector<LevelPrice> all(const PodGrid& grid, std::size_t level,
                              const PlannedCollective& collective, DataType type);
  LevelPrice least(const PodGrid& grid, std::size_t level, const PlannedCollective& collective,
                   DataType type);

  const device::Pod& pod() const { return pod_; }

 private:
  using Key = std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t>;
  const std::vector<collectives::LevelCost>& costs(std::size_t level, const LevelCut& cut,
                                                   Axis axis);
  LevelPrice price(const PodGrid& grid, std::size_t level, const PlannedCollective& collective,
                   double part, const collectives::LevelCost& cost) const;

  const device::Pod& pod_;
  std::map<Key, std::vector<collectives::LevelCost>> known_;
};

// Adds algorithms, time and bytes to a collective. Returns the bytes that a device needs to receive
// contributions to sums.
double add_prices(LevelPrices& prices, const PodGrid& grid, DataType type,
                  PlannedCollective& collective);

// Returns one barrier over the devices in use.
double barrier_seconds(const device::Pod& pod, const PodGrid& grid);

// Returns all distinct sizes of the devices' parts, the largest first, with the number of devices,
// for parts that suit the problem. O(1).
std::vector<DeviceShape> shapes_of(const Problem& problem, const Dims& parts,
                                   std::int64_t serial_parts);

// Computes passes and buffer of a plan from its other fields.
void add_costs(LevelPrices& prices, PodPlan& plan);

}  // namespace tessera::pod::internal
