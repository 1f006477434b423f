#pragma once

#include <optional>
#include <span>
#include <string>

#include "tessera/planner/solver/model.hpp"

namespace tessera::planner::solver {

// The functions of this header check an assignment directly against a model. Tests use them, and
// the solver checks every answer with them before it returns. They share no code with the
// propagators, only the constraints as data. Any number of threads may call them at the same time.

// Returns true if the constraint holds. `values` has one entry per variable of the model.
bool holds(const Model& model, const Constraint& constraint, std::span<const Value> values);

// Returns nullopt if `values`, with one entry per variable, is a solution of the model; otherwise a
// sentence that names the first domain or constraint that `values` breaks. Costs O(model) and one
// call of each function.
std::optional<std::string> first_violation(const Model& model, std::span<const Value> values);

}  // namespace tessera::planner::solver
