#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/planner/internal/search.hpp"
#include "tessera/planner/no_fit.hpp"

namespace tessera::planner::internal {

// One legal partition with its cost, whatever limits it breaks.
struct Sight {
  const Case& c;
  Dims parts;
  Cut cut;
  const Estimate& e;
  bool words_fit;

  std::int64_t total() const { return e.temp + e.resident; }
  bool tile_holds() const {
    return c.quirks().ignore_resident_memory || total() <= c.machine.tile_memory.value;
  }
};

// Calls visit(sight) for every legal partition in ascending order of x, y, z: some microseconds
// each, up to some ten thousand partitions for a chip of 1472 tiles.
void survey(const Case& c, const std::function<void(const Sight&)>& visit);

// How near the legal partitions of a case come to a plan.
struct Nearness {
  std::optional<Dims> parts;                     // the nearest; empty when no partition is legal
  double excess = 0;                             // its worst need as a multiple of what there is
  std::int64_t cycles = 0;                       // at `parts`
  bool any_words_fit = false;                    // any partition has words that are wide enough
  std::int64_t least_temp = kUnbounded;          // temporary bytes of any of these
  std::int64_t least_temp_in_tile = kUnbounded;  // of those that the tile can hold as well
};
Nearness nearness(const Case& c, std::int64_t temp_bound);

// The limit that rules out the case at its nearest partition.
Obstacle obstacle_of(const Case& c, const Nearness& near, std::int64_t temp_bound);

// The index of the nearest of all; `nears` is not empty.
std::size_t nearest_of(const std::vector<Nearness>& nears);

MethodChoice choice_of(const Case& c);

// "<the layer> on gc200 (1472 tiles of 638976 bytes)"
std::string request_text(const Problem& problem, const device::Machine& machine);

// "pass, step" of the step with most temporary memory.
struct LargestStep {
  Pass pass = Pass::Fwd;
  const char* name = "";
  std::int64_t temp = 0;
};
LargestStep largest_step(const Estimate& e);

}  // namespace tessera::planner::internal
