#include "tessera/python/src/plan.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/errors.hpp"
#include "tessera/python/src/interrupt.hpp"
#include "tessera/python/src/method.hpp"
#include "tessera/sparse/convert.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

// The outcome of a search: a plan, or the reasons why there is none, and the nearest request that
// has one.
struct Search {
  planner::PlanResult found;
  planner::DensePlanResult dense;
  report::SparseAlternative sparse;
  planner::NoFit no_fit;
  planner::BestEffort nearest;
};

[[noreturn]] void refuse(const Search& search, const device::Machine& machine) {
  std::vector<std::string> remedies;
  for (const planner::Relaxation& relaxation : search.no_fit.relaxations)
    remedies.push_back(to_string(relaxation));
  py::object nearest = py::none();
  if (search.nearest.result.has_plan)
    nearest = py::cast(
        Plan{{search.nearest.problem, machine, search.nearest.options, search.nearest.result.plan},
             std::nullopt,
             {}});
  throw_no_solution(planner::to_text(search.no_fit), nearest, py::cast(remedies));
}

std::optional<Cycles> dense_cycles(const Plan& plan) {
  if (!plan.dense.plan) return std::nullopt;
  return plan.dense.plan->cost.cycles;
}

std::string explanation(const Plan& plan, bool as_json) {
  return interruptibly<std::string>([plan, as_json](std::stop_token) {
    const auto& [problem, machine, options, chosen] = plan.planned;
    const planner::Explanation found =
        planner::explain(problem, machine, options, plan.stats ? &*plan.stats : nullptr, chosen);
    return as_json ? planner::to_json(found) : planner::to_text(found);
  });
}

}  // namespace

const char* python_name(Pass pass) {
  static constexpr const char* kNames[] = {"fwd", "grad_a", "grad_w"};
  return kNames[std::size_t(pass)];
}

Problem problem_of(const LayerSizes& sizes, std::pair<std::int64_t, std::int64_t> block,
                   double density, const std::string& type, bool backward) {
  return {.size = {sizes[0], sizes[1], sizes[2], sizes[3]},
          .block = {block.first, block.second},
          .density = density,
          .data_type = parse_data_type(type),
          .grad_a = backward,
          .grad_w = backward};
}

Plan make_plan(const Problem& problem, const device::Machine& machine,
               const planner::Options& options, const std::optional<PatternStats>& stats) {
  const auto search = std::make_shared<Search>();
  run_interruptibly([=](std::stop_token) {
    const PatternStats* const pattern = stats ? &*stats : nullptr;
    search->found = planner::plan(problem, machine, options, pattern);
    if (search->found.has_plan) {
      search->dense = report::dense_baseline(problem, machine, options);
      if (search->found.plan.dense)
        search->sparse = report::sparse_alternative(problem, machine, options, pattern);
      return;
    }
    search->no_fit = planner::explain_no_fit(problem, machine, options, pattern);
    search->nearest = planner::plan_best_effort(problem, machine, options, pattern);
  });
  if (!search->found.has_plan) refuse(*search, machine);
  return {{problem, machine, options, search->found.plan}, stats, search->dense, search->sparse};
}

void add_plan(py::module_& module) {
  py::class_<Plan> bound(module, "Plan");
  refuse_construction(bound, "ts.plan(...)");
  add_method(bound, "explain", "explain()",
             "Return the terms, rivals and limits of the plan as text.",
             [](const Plan& plan) { return explanation(plan, false); });
  add_method(bound, "explanation_json", "explanation_json()", "Return the same as JSON.",
             [](const Plan& plan) { return explanation(plan, true); });
  add_method(bound, "to_json", "to_json()",
             "Return the plan with its request as JSON, which `tessera run --plan` reads.",
             [](const Plan& plan) { return planner::plan_to_json(plan.planned); });
  bound.def("__str__", [](const Plan& plan) { return planner::to_string(plan.planned.plan); })
      .def_property_readonly(
          "request", [](const Plan& plan) { return to_string(plan.planned.problem); },
          "The layer in words.")
      .def_property_readonly(
          "cycles", [](const Plan& plan) { return plan.planned.plan.cost.cycles.value; },
          "Modelled cycles of all passes.")
      .def_property_readonly(
          "is_dense", [](const Plan& plan) { return plan.planned.plan.use_dense; },
          "True if all weights are multiplied, because no sparse plan costs less.")
      .def_property_readonly(
          "dense_cycles",
          [](const Plan& plan) -> std::optional<std::int64_t> {
            const auto cycles = dense_cycles(plan);
            return cycles ? std::optional(cycles->value) : std::nullopt;
          },
          "Modelled cycles of the same passes with all weights; None if they do not fit.")
      .def_property_readonly(
          "tile_bytes",
          [](const Plan& plan) {
            const planner::PlanCost& cost = plan.planned.plan.cost;
            return cost.temp.value + cost.resident.value;
          },
          "Bytes that the fullest tile needs.")
      .def_property_readonly(
          "tiles", [](const Plan& plan) { return plan.planned.plan.tiles_used(); }, "Tiles in use.")
      .def_property_readonly(
          "partition",
          [](const Plan& plan) {
            const Dims& cut = plan.planned.plan.partition;
            return py::dict("g"_a = cut.g, "x"_a = cut.x, "y"_a = cut.y, "z"_a = cut.z);
          },
          "Parts of groups, outputs (x), inputs (y) and batch (z).")
      .def_property_readonly("machine", [](const Plan& plan) { return plan.planned.machine; });
  module.def(
      "_plan",
      [](const LayerSizes& sizes, std::pair<std::int64_t, std::int64_t> block, double density,
         const std::string& type, bool backward, const device::Machine& machine,
         const std::string& options) {
        return make_plan(problem_of(sizes, block, density, type, backward), machine,
                         planner::parse_options(options, "options"), std::nullopt);
      },
      "sizes"_a, "block"_a, "density"_a, "dtype"_a, "backward"_a, "machine"_a, "options"_a);
}

}  // namespace tessera::python
