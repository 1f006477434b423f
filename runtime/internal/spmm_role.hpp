#pragma once

#include <cstdint>

#include "tessera/base/dims.hpp"
#include "tessera/base/tile_map.hpp"
#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime::internal {

// The axes of a dense pass: Fwd reads along y and writes along x, GradA the opposite.
struct SpmmRole {
  bool forward;

  Range in_rows(const partitioner::TileGrid& grid, Cell c) const {
    return forward ? grid.y_range(c.y) : grid.x_range(c.x);
  }
  Range out_rows(const partitioner::TileGrid& grid, Cell c) const {
    return forward ? grid.x_range(c.x) : grid.y_range(c.y);
  }
  std::int64_t in_parts(const Dims& splits) const { return forward ? splits.y : splits.x; }
  std::int64_t out_parts(const Dims& splits) const { return forward ? splits.x : splits.y; }
  std::int64_t Cell::* in_axis() const { return forward ? &Cell::y : &Cell::x; }
  std::int64_t Cell::* out_axis() const { return forward ? &Cell::x : &Cell::y; }
  std::int64_t all_in_rows(const Dims& size) const { return forward ? size.y : size.x; }
  // The first row of a group's part of the operand and of the result.
  std::int64_t first_in_row(const Dims& size, Cell c) const {
    return c.g * (forward ? size.y : size.x);
  }
  std::int64_t first_out_row(const Dims& size, Cell c) const {
    return c.g * (forward ? size.x : size.y);
  }
  // Return the cell with `part` along the axis that the pass reads, or that it writes.
  Cell with_in_part(Cell c, std::int64_t part) const {
    c.*in_axis() = part;
    return c;
  }
  Cell with_out_part(Cell c, std::int64_t part) const {
    c.*out_axis() = part;
    return c;
  }
};

// Returns the axes of the pass of a spec: those of Fwd unless its method is one of GradA.
inline SpmmRole role_of(const PassSpec& spec) {
  return {spec.method == codelets::Method::ElementFwd || spec.method == codelets::Method::BlockFwd};
}

}  // namespace tessera::runtime::internal
