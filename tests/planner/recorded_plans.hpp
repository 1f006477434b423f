#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/planner/options.hpp"

namespace tessera::planner {

// One of PopSparse's own plans (PopLibs 3.4), made with the figures of GC200 and its defaults.
struct RecordedPlan {
  std::map<std::string, std::string> field;  // by the table's column names; empty: no plan

  const std::string& text(const std::string& name) const { return field.at(name); }
  std::int64_t number(const std::string& name) const { return std::stoll(field.at(name)); }
  bool found() const { return !text("X").empty(); }
  Problem problem() const;
};

// The 400 of tests/data/popsparse_plans.tsv, in its order, or those of the ids given.
// Error{BadInput} when the file is not there, Error{InvalidArgument} for an id it has not.
std::vector<RecordedPlan> read_recorded_plans(const std::vector<std::string>& ids = {});

// Options under which plans equal the recorded ones in every number.
Options parity_options();

}  // namespace tessera::planner
