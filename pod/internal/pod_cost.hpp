#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "tessera/collectives/schedule_cost.hpp"
#include "tessera/pod/pod_plan.hpp"

namespace tessera::pod::internal {

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

// Throws Error{InvalidArgument} for a plan whose grid does not suit its problem and pod, or with
// serial parts that leave a share empty.
void check_cut(const PodPlan& plan);

// Returns the collectives of a pass on devices whose largest share is `share`, for R with
// `nonzeros` elements there, before they have levels and prices. Slices stay gathered for GradW if
// the batch is in one part.
std::vector<PlannedCollective> collectives_of(const Problem& problem, Pass pass, const Dims& parts,
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

  // Returns the time of an operation on one level by an algorithm.
  double seconds(std::size_t level, const collectives::LevelCost& cost,
                 collectives::Operation operation, double part_bytes) const;

  const device::Pod& pod() const { return pod_; }

 private:
  using Key = std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t>;
  const device::Pod& pod_;
  std::map<Key, std::vector<collectives::LevelCost>> known_;
};

// Returns the bytes of a member's part of a collective on a level.
double part_bytes(const PodGrid& grid, std::size_t level, const PlannedCollective& collective,
                  DataType type);

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
