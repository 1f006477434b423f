#include "tessera/python/src/host_plan.hpp"

#include <pybind11/stl.h>

#include <string>
#include <utility>

#include "tessera/python/src/interrupt.hpp"
#include "tessera/python/src/method.hpp"
#include "tessera/python/src/plan.hpp"
#include "tessera/study/target.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

using study::HostAnswer;

// Rates that are not known are measured, which takes seconds.
HostAnswer host_plan(const LayerSizes& sizes, std::pair<std::int64_t, std::int64_t> block,
                     double density, const std::string& type, bool backward) {
  const Problem layer = problem_of(sizes, block, density, type, backward);
  return interruptibly<HostAnswer>([layer](std::stop_token) {
    return study::answer_on_host(layer, nullptr, study::Target{}.rates());
  });
}

py::dict cells_by_pass(const HostAnswer& answer) {
  py::dict all;
  for (const auto& [pass, cells] : answer.plan.cells)
    all[python_name(pass)] = py::dict("outputs"_a = cells.x, "inputs"_a = cells.y,
                                      "batch"_a = cells.z, "packed"_a = cells.pack);
  return all;
}

py::dict passes_of(const report::HostWay& way) {
  py::dict all;
  for (const auto& [pass, forecast] : way.passes)
    all[python_name(pass)] =
        py::dict("method"_a = std::string(way.method(pass)), "seconds"_a = forecast.seconds());
  return all;
}

py::dict forms_by_name(const HostAnswer& answer) {
  py::dict all;
  for (const report::HostWay& way : answer.plan.ways) all[py::str(way.name())] = passes_of(way);
  return all;
}

}  // namespace

void add_host_plan(py::module_& module) {
  py::class_<HostAnswer> type(module, "HostPlan");
  refuse_construction(type, "ts.plan(..., machine=\"host\")");
  add_method(type, "to_json", "to_json()",
             "Return the forecasts as JSON, as `tessera plan --machine host --json` does.",
             [](const HostAnswer& answer) { return to_json(answer); });
  add_method(type, "to_csv", "to_csv()", "Return the forecast of every form and pass as CSV.",
             [](const HostAnswer& answer) { return report::to_csv(answer.plan); });
  type.def("__str__", [](const HostAnswer& answer) { return to_text(answer); })
      .def_property_readonly(
          "request", [](const HostAnswer& answer) { return to_string(answer.plan.problem); },
          "The layer in words.")
      .def_property_readonly(
          "cpu", [](const HostAnswer& answer) { return answer.plan.cpu_model; }, "This computer.")
      .def_property_readonly(
          "threads", [](const HostAnswer& answer) { return answer.plan.threads; },
          "The threads that forecasts are for: all cores.")
      .def_property_readonly(
          "seconds", [](const HostAnswer& answer) { return answer.plan.ways.front().seconds(); },
          "Forecast of all passes with the blocks as given.")
      .def_property_readonly(
          "dense_seconds",
          [](const HostAnswer& answer) { return answer.plan.ways.back().seconds(); },
          "Forecast of the same passes with all weights.")
      .def_property_readonly(
          "fastest", [](const HostAnswer& answer) { return answer.plan.fastest().name(); },
          "The form with the shortest forecast: \"4x4\" or \"dense\".")
      .def_property_readonly("cells", &cells_by_pass,
                             "Each pass's cut for the caches, with the blocks as given.")
      .def_property_readonly(
          "forms", &forms_by_name,
          "Each form's passes: \"method\" (\"sparse\", \"packed\" rows or \"dense\") and forecast "
          "\"seconds\".");
  module.def("_plan_on_host", &host_plan, "sizes"_a, "block"_a, "density"_a, "dtype"_a,
             "backward"_a);
}

}  // namespace tessera::python
