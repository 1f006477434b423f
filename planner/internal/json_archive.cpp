#include "tessera/planner/internal/json_archive.hpp"

namespace tessera::planner::internal {

std::string to_text(const Json& json) { return json.dump(2) + "\n"; }

Json json_of(const Dims& d) { return {{"g", d.g}, {"x", d.x}, {"y", d.y}, {"z", d.z}}; }

}  // namespace tessera::planner::internal
