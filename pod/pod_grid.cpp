#include "tessera/pod/pod_grid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::pod {
namespace {

// Returns the coordinates of a position on one level.
Dims position_of(const LevelCut& cut, std::int64_t position) {
  Dims at{0, 0, 0, 0};
  for (const Axis axis : cut.order) {
    const std::int64_t parts = along(cut.parts, axis);
    along(at, axis) = position % parts;
    position /= parts;
  }
  at.g = position;
  return at;
}

bool is_order(const std::array<Axis, 3>& order) {
  return order[0] != order[1] && order[0] != order[2] && order[1] != order[2];
}

}  // namespace

Dims PodGrid::parts() const {
  Dims product;
  for (const LevelCut& level : levels) product = product * level.parts;
  return product;
}

void check_grid(const PodGrid& grid, const device::Pod& pod) {
  if (grid.levels.size() != pod.levels.size())
    throw_invalid(fmt::format("a grid has {} levels and its pod {}; it needs a cut for each",
                              grid.levels.size(), pod.levels.size()));
  for (std::size_t l = 0; l < grid.levels.size(); ++l) {
    const LevelCut& cut = grid.levels[l];
    const std::int64_t devices = pod.levels[l].devices;
    const bool positive = std::min({cut.parts.g, cut.parts.x, cut.parts.y, cut.parts.z}) > 0;
    const double product = double(cut.parts.g) * double(cut.parts.x) * double(cut.parts.y) *
                           double(cut.parts.z);  // beyond 64 bits if all are large
    if (!positive || product > double(devices) || !is_order(cut.order))
      throw_invalid(
          fmt::format("level {} of a grid has the parts {}; it needs at least one of each, "
                      "at most {} together, and every axis once in its order",
                      l, to_string(cut.parts), devices));
  }
}

std::vector<DevicePlace> places_of(const PodGrid& grid, const device::Pod& pod) {
  check_grid(grid, pod);
  std::vector<DevicePlace> places = {{}};
  Dims inner;  // parts of the levels before
  std::int64_t stride = 1;
  for (std::size_t l = 0; l < grid.levels.size(); ++l) {
    const LevelCut& cut = grid.levels[l];
    std::vector<DevicePlace> all;
    for (std::int64_t position = 0; position < cut.parts.product(); ++position) {
      const Dims outer = inner * position_of(cut, position);
      for (const auto& [device, at] : places)
        all.push_back({device + position * stride,
                       {at.g + outer.g, at.x + outer.x, at.y + outer.y, at.z + outer.z}});
    }
    places = std::move(all);
    inner = inner * cut.parts;
    stride *= pod.levels[l].devices;
  }
  return places;
}

std::string to_string(const PodGrid& grid) {
  std::vector<std::int64_t> used;
  for (const LevelCut& level : grid.levels) used.push_back(level.parts.product());
  const std::string all = to_string(grid.parts());
  if (used.empty()) return all + ", one device";
  return fmt::format("{}, {} devices", all, fmt::join(used, " x "));
}

}  // namespace tessera::pod
