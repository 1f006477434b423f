#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/planner/internal/search.hpp"
#include "tessera/planner/no_fit.hpp"

namespace tessera::planner::internal {

// A legal partition with its cost, whatever limits it breaks.
struct Sight {
  const Case& c;
  Dims parts;
  Cut cut;
  const Estimate& e;
  bool words_fit;

  std::int64_t total() const { return e.temp + e.resident; }
  bool tile_holds() const { return c.parity() || total() <= c.machine.tile_memory.value; }
};

// Calls visit(sight) for every legal partition in ascending order of x, y, z. Each costs some
// microseconds; a chip of 1472 tiles has up to some ten thousand partitions.
void survey(const Case& c, const std::function<void(const Sight&)>& visit);

// The distance of the legal partitions of a case from a plan.
struct Nearness {
  std::optional<Dims> parts;             // the nearest; empty if no partition is legal
  double excess = 0;                     // its worst need as a multiple of what is available
  std::int64_t cycles = 0;               // at `parts`
  bool any_words_fit = false;            // true if words are wide enough for any partition
  std::int64_t least_temp = kUnbounded;  // temporary bytes of any such partition
  std::int64_t least_temp_in_tile = kUnbounded;  // of those that the tile can also hold
};
Nearness nearness(const Case& c, std::int64_t temp_bound);

// Returns the limit that rules out the case at its nearest partition.
Obstacle obstacle_of(const Case& c, const Nearness& near, std::int64_t temp_bound);

// Returns the index of the nearest of all; `nears` must not be empty.
std::size_t nearest_of(const std::vector<Nearness>& nears);

MethodChoice choice_of(const Case& c);

// Returns for example "<the layer> on gc200 (1472 tiles of 638976 bytes)".
std::string request_text(const Problem& problem, const device::Machine& machine);

// The step with the most temporary memory.
struct LargestStep {
  Pass pass = Pass::Fwd;
  Term term = Term::Multiply;
  std::int64_t temp = 0;
};
LargestStep largest_step(const Estimate& e);

}  // namespace tessera::planner::internal
