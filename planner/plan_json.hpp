#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/base/problem.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/json/reader.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/planner/plan.hpp"

namespace tessera::planner {

// Return sizes and a problem as they stand in a plan file, and read them back. Throw
// Error{BadInput} with the path of an unknown or missing key, and of a value out of range.
json::Value json_of(const Dims& dims);
json::Value json_of(const Problem& problem);
Dims read_dims(const json::Value& value, const json::Place& place);
Problem read_problem(const json::Value& value, const json::Place& place);

// The version of the JSON below. It is raised with every change after which a reader of the old
// form would misread the new one.
inline constexpr std::int64_t kPlanSchemaVersion = 4;

// A plan together with its request; the content of a plan file. Pattern statistics are not part of
// it. The encoder finds out if a pattern fits in the plan's buckets.
struct PlannedLayer {
  Problem problem;
  device::Machine machine;
  Options options;
  Plan plan;

  friend bool operator==(const PlannedLayer&, const PlannedLayer&) = default;
};

// Returns {"schema_version": kPlanSchemaVersion, "problem": .., "machine": .., "options": ..,
// "plan": ..} with every field by its name and the cost by pass and term. All numbers read back as
// the same numbers. The machine is written in full, the options with the keys of option text.
// Throws Error{InvalidArgument} if a string in it is not UTF-8. Allocates. Any number of threads
// may call it.
std::string plan_to_json(const PlannedLayer& layer);

// Reads the text of plan_to_json() back: plan_from_json(plan_to_json(layer), ..) == layer. `where`
// names the text in messages.
//
// The text is not trusted. Throws Error{BadInput} with the path of an unknown or missing key, of a
// value of the wrong type, or of a value outside its range, and with that range. Also throws it for
// a plan that is impossible for this problem on this machine: methods, block and grain that do not
// belong together, more tiles than the machine has, empty shares, a partition other than the
// options pin, buckets that exceed a tile, totals that are not the sum of their terms. A file of
// another version is refused before anything else of it is read. Linear in the text. Any number of
// threads may call it.
PlannedLayer plan_from_json(std::string_view text, std::string_view where);

// Checks that a plan was made for this problem and machine. Throws Error{InvalidArgument} that
// names the first field in which they differ, with both values.
void check_plan_is_for(const PlannedLayer& layer, const Problem& problem,
                       const device::Machine& machine, std::string_view where);

}  // namespace tessera::planner
