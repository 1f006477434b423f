#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

#include "tessera/base/pattern_stats.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/python/src/method.hpp"
#include "tessera/report/dense_verdict.hpp"

namespace tessera::python {

// A plan with its request: what ts.plan returns.
struct Plan {
  planner::PlannedLayer planned;
  std::optional<PatternStats> stats;  // of the pattern that it was made for
  planner::DensePlanResult dense;     // the same layer with all of its weights
  report::SparseAlternative sparse;   // the same layer with buckets; empty if it has some
};

// Plans a layer; Ctrl-C ends the wait. Throws Python's NoSolution, with the nearest plan and the
// remedies, if there is none. Needs the interpreter lock.
Plan make_plan(const Problem& problem, const device::Machine& machine,
               const planner::Options& options, const std::optional<PatternStats>& stats);

// Adds the class Plan, and the functions that make one, to the module.
void add_plan(pybind11::module_& module);

}  // namespace tessera::python

template <>
struct pybind11::detail::type_caster<tessera::python::Plan>
    : tessera::python::MadeCaster<tessera::python::Plan> {};
