#include "tessera/runtime/propagation.hpp"

namespace tessera::runtime {
namespace {

// Records the shifts from the current displacement `at` to the wanted one.
struct Walker {
  Dims splits;
  Displacement at;
  std::vector<PropagationStep>& steps;

  void shift(Axis axis, std::int64_t Displacement::* along, std::int64_t to, std::int64_t count) {
    while (at.*along != to) {
      at.*along = (at.*along + 1) % count;
      steps.push_back({.shift = axis, .after = at, .compute = false});
    }
  }
  void go(Displacement to) {
    shift(Axis::X, &Displacement::x, to.x, splits.x);
    shift(Axis::Y, &Displacement::y, to.y, splits.y);
    shift(Axis::Z, &Displacement::z, to.z, splits.z);
  }
  void visit(Displacement to) {
    if (steps.empty()) {
      at = to;
      steps.push_back({.shift = Axis::Z, .after = to, .compute = true});
      return;
    }
    go(to);
    steps.back().compute = true;
  }
};

// Visits all z at one (x, y), beginning at the current z, so a full turn has z_count - 1 shifts.
void visit_column(Walker& walker, Displacement to, std::int64_t z_count, bool own_is_served) {
  const std::int64_t begin = walker.at.z;
  for (std::int64_t i = 0; i < z_count; ++i) {
    to.z = (begin + i) % z_count;
    if (!(own_is_served && to.z == 0)) walker.visit(to);
  }
}

}  // namespace

void propagation_steps(const partitioner::Travel& travel, Dims splits, Served served,
                       std::vector<PropagationStep>& steps) {
  steps.clear();
  Walker walker{splits, {}, steps};
  const std::int64_t z_count = served == Served::NoZ ? 1 : splits.z;
  for (std::int64_t x = 0; x < travel.x_end(); ++x) {
    const std::int64_t begin = walker.at.y;
    for (std::int64_t i = 0; i < splits.y; ++i) {
      const std::int64_t y = (begin + i) % splits.y;
      const bool home = x == 0 && y == 0;
      if (y >= travel.y_end[std::size_t(x)] || (home && served != Served::OwnZ)) continue;
      visit_column(walker, {x, y, 0}, z_count, home);
    }
  }
}

void return_home(Displacement from, Dims splits, std::vector<PropagationStep>& steps) {
  steps.clear();
  Walker walker{splits, from, steps};
  walker.go({});
}

}  // namespace tessera::runtime
