#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner {

// Of the JSON below; raised when a reader of the old form would misread the new one.
inline constexpr std::int64_t kPlanSchemaVersion = 1;

// A plan with all that was asked for: what a plan file holds. Pattern statistics are not part of
// it; whether a pattern fits a plan's buckets is found out when it is encoded.
struct PlannedLayer {
  Problem problem;
  device::Machine machine;
  Options options;
  Plan plan;

  friend bool operator==(const PlannedLayer&, const PlannedLayer&) = default;
};

// {"schema_version": 1, "problem": .., "machine": .., "options": .., "plan": ..}, every field by
// its name, the cost by pass and term; numbers read back as the same numbers. The machine is
// written in full, the options with the keys of option text. Error{InvalidArgument} when a text in
// it is not UTF-8. Allocates; any number of threads.
std::string plan_to_json(const PlannedLayer& layer);

// The inverse: plan_from_json(plan_to_json(layer), ..) == layer. `where` names the text in
// messages. Nothing is trusted: Error{BadInput} names the path of an unknown or missing key, of a
// wrong type and of a value outside its range, which it gives; so it does for a plan that cannot be
// one of this problem on this machine: methods, block and grain that do not belong together, more
// tiles than there are, empty shares, another partition than the options pin, totals that are not
// the sum of their terms. Linear in the text; any number of threads.
PlannedLayer plan_from_json(std::string_view text, std::string_view where);

// Throws Error{InvalidArgument} that names the first field in which the plan's problem or machine
// differs from these, with both values.
void check_plan_is_for(const PlannedLayer& layer, const Problem& problem,
                       const device::Machine& machine, std::string_view where);

}  // namespace tessera::planner
