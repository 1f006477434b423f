#pragma once

#include "tessera/planner/internal/plan_fields.hpp"
#include "tessera/planner/static_plan.hpp"

// The fields of a static plan in JSON.
namespace tessera::planner::internal {

inline constexpr WholeRange kPlaces{0, 2147483647};

void describe(auto& fields, MaybeConst<StaticTile> auto& tile) {
  auto& [blocks, rows, columns] = tile;
  fields("blocks", blocks, kPlaces);
  fields("rows", rows, kPlaces);
  fields("columns", columns, kPlaces);
}

void describe(auto& fields, MaybeConst<StaticLayout> auto& layout) {
  auto& [tile_of, tiles] = layout;
  fields("tile_of", tile_of, kPlaces);
  fields("tiles", tiles);
}

void describe(auto& fields, MaybeConst<StaticPart> auto& part) {
  auto& [begin, end, first_tile, layout] = part;
  fields("begin", begin, kPlaces);
  fields("end", end, kSizes);
  fields("first_tile", first_tile, kPlaces);
  fields("layout", layout, kPlaces);
}

void describe(auto& fields, MaybeConst<StaticAssignment> auto& assignment) {
  auto& [z_parts, bands, parts, layouts] = assignment;
  fields("z_parts", z_parts, kSizes);
  fields("bands", bands, kPlaces);
  fields("parts", parts);
  fields("layouts", layouts);
}

// All fields of a plan; a new one is added here by hand, because the base has no binding.
void describe(auto& fields, const StaticPlan& plan) {
  fields("data_type", plan.data_type, type_names());
  describe(fields, static_cast<const StaticAssignment&>(plan));
  fields("grad_a", plan.grad_a);
  fields("cost", plan.cost);
}

}  // namespace tessera::planner::internal
