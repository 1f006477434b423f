#include <algorithm>

#include "tessera/planner/internal/static_fields.hpp"
#include "tessera/planner/static_plan.hpp"

namespace tessera::planner {
namespace {

void require(bool holds, std::string_view where, std::string_view rule) {
  if (!holds) throw Error(ErrorCode::BadInput, fmt::format("{}: {}", where, rule));
}

void check_layout(const StaticLayout& layout, std::size_t blocks, std::string_view where) {
  require(layout.tile_of.size() == blocks, where, "all layouts must have the same blocks");
  std::vector<std::int64_t> count(layout.tiles.size(), 0);
  for (const std::int32_t tile : layout.tile_of) {
    require(std::size_t(tile) < count.size(), where,
            "a block is on a tile that its layout has not");
    ++count[std::size_t(tile)];
  }
  for (std::size_t t = 0; t < count.size(); ++t)
    require(count[t] == layout.tiles[t].blocks, where,
            "the blocks of a tile must be those that tile_of places there");
}

// Checks the bands, layouts and parts of a plan or of an assignment, whose layouts have so many
// blocks.
void check_assignment(const auto& plan, std::size_t blocks, std::string_view where) {
  require(!plan.bands.empty() && plan.bands.front() == 0 && std::ranges::is_sorted(plan.bands),
          where, "bands must ascend from 0");
  for (const StaticLayout& layout : plan.layouts) check_layout(layout, blocks, where);
  std::int64_t column = 0, tile = 0;
  for (const StaticPart& part : plan.parts) {
    require(std::size_t(part.layout) < plan.layouts.size(), where, "a part has no layout");
    require(part.begin == column && part.end > part.begin, where,
            "parts must follow each other without a gap");
    require(part.first_tile == tile, where, "the tiles of parts must follow each other");
    column = part.end;
    tile += std::ssize(plan.layouts[std::size_t(part.layout)].tiles);
  }
}

std::int64_t columns_of(const std::vector<StaticPart>& parts) {
  return parts.empty() ? 0 : parts.back().end;
}

void check_static_plan(const StaticPlan& plan, std::string_view where) {
  const std::size_t blocks = plan.layouts.empty() ? 0 : plan.layouts.front().tile_of.size();
  check_assignment(plan, blocks, where);
  if (!plan.grad_a) return;
  check_assignment(*plan.grad_a, blocks, where);
  require(columns_of(plan.grad_a->parts) == columns_of(plan.parts), where,
          "the parts of GradA must have the columns of the batch");
}

}  // namespace

std::string to_json(const StaticPlan& plan) {
  return internal::to_text(internal::to_json_object(plan));
}

StaticPlan static_plan_from_json(std::string_view text, std::string_view where) {
  const json::Value document = json::parse(text, where);
  const auto plan = internal::read_object<StaticPlan>(document, {where, ""});
  check_static_plan(plan, where);
  return plan;
}

}  // namespace tessera::planner
