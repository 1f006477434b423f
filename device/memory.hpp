#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/units.hpp"

namespace tessera::device {

// The phase in which a tile holds most; the first of equals.
struct TilePeak {
  Bytes bytes;
  int phase = 0;

  friend bool operator==(const TilePeak&, const TilePeak&) = default;
};

// The slots of one name that a tile holds at some time.
struct HeldBuffer {
  std::string name;
  Bytes bytes;

  friend bool operator==(const HeldBuffer&, const HeldBuffer&) = default;
};

// What a program needs of tile memory: counted from its slots and the phases in which they live.
// A plain value, for a program that fits and for one that does not.
struct MemoryUse {
  std::vector<TilePeak> tiles;      // by tile
  std::vector<std::string> phases;  // names, where the program has given them
  TileId fullest;                   // the lowest of equals
  std::vector<Bytes> by_phase;      // what the fullest tile holds
  std::vector<HeldBuffer> at_peak;  // on the fullest tile in its fullest phase, largest first

  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
  // Of the fullest tile.
  Bytes high_water() const;
  bool fits(Bytes tile_memory) const { return high_water() <= tile_memory; }
  // Empty where phases have no names.
  std::string phase_name(int phase) const;
};

// The fullest tile, what it holds at its peak, and its bytes phase by phase; a few lines of text.
std::string to_string(const MemoryUse& use);

}  // namespace tessera::device
