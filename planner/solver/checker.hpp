#pragma once

#include <optional>
#include <span>
#include <string>

#include "tessera/planner/solver/model.hpp"

namespace tessera::planner::solver {

// Plain readings of a model, for tests and for the last check of every answer. They share no code
// with the propagators, only the constraints as data. Any number of threads at once.

// Whether one constraint holds. `values` has one entry per variable of the model.
bool holds(const Model& model, const Constraint& constraint, std::span<const Value> values);

// Nothing if `values`, one per variable, is a solution of the model; else a sentence that names the
// first domain or constraint it breaks. O(model) plus one call of each function.
std::optional<std::string> first_violation(const Model& model, std::span<const Value> values);

}  // namespace tessera::planner::solver
