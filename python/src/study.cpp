#include "tessera/python/src/study.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/interrupt.hpp"
#include "tessera/python/src/machine.hpp"
#include "tessera/python/src/method.hpp"
#include "tessera/python/src/plan.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/study/advice.hpp"
#include "tessera/study/break_even.hpp"
#include "tessera/study/sweep.hpp"
#include "tessera/study/target.hpp"
#include "tessera/study/verdict.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

using MaybeMachine = std::optional<device::Machine>;  // none: this computer

// A question about a layer, on a machine or on this computer.
struct Question {
  Problem layer;
  study::Target target;

  // Returns the target, whose measurements end with a stop.
  study::Target until(std::stop_token stop) const {
    study::Target stopped = target;
    stopped.is_stopped = [stop] { return stop.stop_requested(); };
    return stopped;
  }
};

Question question(const LayerSizes& sizes, std::pair<std::int64_t, std::int64_t> block,
                  double density, const std::string& type, bool backward, MaybeMachine machine,
                  const std::string& options) {
  study::Target target{.name = machine ? machine->name : device::kHostMachine,
                       .machine = std::move(machine),
                       .options = planner::parse_options(options, "options")};
  return {problem_of(sizes, block, density, type, backward), std::move(target)};
}

// Returns the same question, answered by runs on this computer.
Question measured(const Question& asked) {
  if (!asked.target.is_host())
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("measure is True, and {} is a modelled machine, whose costs are planned: "
                    "leave out machine or measure",
                    asked.target.name));
  Question runs = asked;
  runs.target.measures = true;
  return runs;
}

std::string verdict(const Question& asked) {
  return interruptibly<std::string>([asked](std::stop_token) {
    check_problem(asked.layer);
    const auto model = asked.target.expected(asked.layer);
    const report::DenseComparison found =
        compare(*model, {.block = asked.layer.block, .density = asked.layer.density});
    if (found.passes.empty())
      throw Error(ErrorCode::NoSolution, found.no_sparse + "; " + found.no_dense);
    return to_json(found);
  });
}

std::pair<double, std::int64_t> crossover(const Question& asked) {
  return interruptibly<std::pair<double, std::int64_t>>([asked](std::stop_token stop) {
    check_problem(asked.layer);
    const auto model = asked.target.expected(asked.layer);
    const study::Cost dense = model->dense();
    if (!dense.value) throw Error(ErrorCode::NoSolution, dense.note);
    study::DensityGrid grid;
    grid.is_stopped = [stop] { return stop.stop_requested(); };
    const study::Form form{.block = asked.layer.block, .density = 1 / double(grid.steps)};
    const double density = study::break_even(*model, form, *dense.value, grid);
    // A search that finds nothing may have been asked for what no plan can keep.
    if (const study::Cost least = density > 0 ? dense : model->cheapest(form); !least.value)
      throw Error(ErrorCode::NoSolution, least.note);
    return std::pair(density, std::int64_t(*dense.value));
  });
}

std::string advise_file(const py::object& file, const std::string& tensor, const Question& asked) {
  const std::string path = path_of(file);
  return interruptibly<std::string>([=](std::stop_token stop) {
    const auto goes_on = [stop](const std::string&, const std::string&) {
      return !stop.stop_requested();
    };
    return to_json(study::advise(path, tensor, asked.layer, {asked.until(stop)}, goes_on,
                                 [](const study::Advice&) {}));
  });
}

std::string advise_matrix(const py::tuple& weights, const Question& asked) {
  const sparse::Csr<float> matrix = csr_from_arrays(MatrixArrays(weights));
  auto ones = std::make_shared<sparse::Csr<double>>(
      sparse::with_block(sparse::cast<double>(matrix), BlockShape{1, 1}));
  std::ranges::fill(ones->values, 1.0);
  return interruptibly<std::string>([asked, ones](std::stop_token stop) {
    Problem layer = asked.layer;
    layer.size.x = ones->rows;
    layer.size.y = ones->cols;
    check_problem(layer);
    const study::Target target = asked.until(stop);
    study::Advice advice{.file = "weights", .asked = layer, .is_complete = true};
    advice.machines.push_back({target.name,
                               target.origin(),
                               target.note(),
                               {study::advise(*target.expected(layer), *ones, /*in_words=*/true)}});
    advice.machines.front().layers.front().name = "weights";
    return to_json(advice);
  });
}

std::string sweep(const Question& asked,
                  const std::vector<std::pair<std::string, std::vector<double>>>& over) {
  std::vector<study::SweepAxis> axes;
  for (const auto& [figure, values] : over) axes.push_back({figure, values});
  return interruptibly<std::string>([asked, axes](std::stop_token stop) {
    study::Sweep grid(asked.layer, axes, asked.until(stop));
    for (std::int64_t at = 0; at < grid.points() && !stop.stop_requested(); ++at)
      grid.add([](const std::function<void()>& change) { change(); });
    return to_json(grid.report());
  });
}

}  // namespace

void add_study(py::module_& module) {
  py::class_<Question>(module, "_Question")
      .def(py::init(&question), "sizes"_a, "block"_a, "density"_a, "dtype"_a, "backward"_a,
           "machine"_a.none(true), "options"_a)
      .def("measured", &measured);
  module.def("_verdict", &verdict, "question"_a);
  module.def("_crossover", &crossover, "question"_a);
  module.def("_advise_file", &advise_file, "path"_a, "tensor"_a, "question"_a);
  module.def("_advise_matrix", &advise_matrix, "weights"_a, "question"_a);
  module.def("_sweep", &sweep, "question"_a, "over"_a);
}

}  // namespace tessera::python
