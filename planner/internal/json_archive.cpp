#include "tessera/planner/internal/json_archive.hpp"

namespace tessera::planner::internal {

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tessera::planner::internal
