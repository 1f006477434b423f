#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/device/pod.hpp"

namespace tessera::pod {

// The cut of a layer along one level of a pod: how many parts each dimension has there. The devices
// of the level that the parts do not need stay idle.
struct LevelCut {
  Dims parts;

  // The axes from the one whose neighbours are adjacent on the level outwards. Groups are outermost
  // because nothing moves between them.
  std::array<Axis, 3> order = {Axis::X, Axis::Y, Axis::Z};

  friend bool operator==(const LevelCut&, const LevelCut&) = default;
};

// A layer is cut over the devices of a pod as a grid of parts of groups, x, y and z. Its
// coordinates are numbers of mixed radix: the part of level 0 counts ones, that of level 1
// multiples of the parts of level 0, and so on. A plain value.
struct PodGrid {
  std::vector<LevelCut> levels;  // one for each level of the pod, from the inside out

  friend bool operator==(const PodGrid&, const PodGrid&) = default;

  // Returns the parts of each dimension, the products over the levels.
  Dims parts() const;

  // Returns the number of devices in use.
  std::int64_t devices() const { return parts().product(); }
};

// A device in use, and its part of the layer.
struct DevicePlace {
  std::int64_t device = 0;  // number in the pod
  Dims at{0, 0, 0, 0};      // coordinates in the grid

  friend bool operator==(const DevicePlace&, const DevicePlace&) = default;
};

// Returns the devices in use in ascending order. Throws Error{InvalidArgument} unless the grid has
// a cut for each level of the pod that its devices suffice for. O(devices).
std::vector<DevicePlace> places_of(const PodGrid& grid, const device::Pod& pod);

// Throws Error{InvalidArgument} as places_of() does.
void check_grid(const PodGrid& grid, const device::Pod& pod);

// Returns the grid as text, for example "g1 x2 y2 z16: 4 x 16 devices", by level.
std::string to_string(const PodGrid& grid);

}  // namespace tessera::pod
