#include "tessera/planner/internal/static_fields.hpp"
#include "tessera/planner/static_plan.hpp"

namespace tessera::planner {

std::string to_json(const StaticPlan& plan) {
  return internal::to_text(internal::to_json_object(plan));
}

}  // namespace tessera::planner
