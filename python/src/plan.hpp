#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tessera/base/pass.hpp"
#include "tessera/base/pattern_stats.hpp"
#include "tessera/base/problem.hpp"
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

// Groups, outputs, inputs and batch.
using LayerSizes = std::array<std::int64_t, 4>;

// Returns the name of a pass in Python: "fwd", "grad_a" or "grad_w".
const char* python_name(Pass pass);

// Returns the problem of a layer with a random pattern, forward only or with both gradients.
Problem problem_of(const LayerSizes& sizes, std::pair<std::int64_t, std::int64_t> block,
                   double density, const std::string& type, bool backward);

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
