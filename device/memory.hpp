#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/units.hpp"

namespace tessera::device {

// The stage in which a tile holds the most bytes; the first one on ties.
struct TilePeak {
  Bytes bytes;
  int stage = 0;

  friend bool operator==(const TilePeak&, const TilePeak&) = default;
};

// All slots of one name that a tile holds in some stage.
struct HeldBuffer {
  std::string name;
  Bytes bytes;

  friend bool operator==(const HeldBuffer&, const HeldBuffer&) = default;
};

// The tile memory that a program needs, counted from its slots and their intervals. A plain value,
// which exists also for a program that does not fit. Phases are the numbers of
// Engine::begin_stage.
struct MemoryUse {
  std::vector<TilePeak> tiles;      // [tiles]
  std::vector<std::string> stages;  // names of the stages; empty if the program has none
  TileId fullest;                   // the lowest number on ties
  std::vector<Bytes> by_stage;      // [stages] bytes on the fullest tile
  std::vector<HeldBuffer> at_peak;  // on the fullest tile in its fullest stage, largest first

  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;

  // Returns the bytes that the fullest tile holds at its peak; 0 if there are no tiles.
  Bytes high_water() const;

  // Returns true if no tile needs more than `tile_memory`.
  bool fits(Bytes tile_memory) const { return high_water() <= tile_memory; }

  // Returns the name of a stage, or an empty string if it has none.
  std::string stage_name(int stage) const;
};

// Returns a few lines of text: the fullest tile, the buffers that it holds at its peak, and its
// bytes in each stage.
std::string to_string(const MemoryUse& use);

}  // namespace tessera::device
