#include "tessera/planner/internal/json_archive.hpp"

namespace tessera::planner::internal {

std::string to_text(const Json& json) { return json.dump(2) + "\n"; }

}  // namespace tessera::planner::internal
