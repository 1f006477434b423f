#include "tessera/python/src/study.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/planner/options.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/interrupt.hpp"
#include "tessera/python/src/machine.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/study/advice.hpp"
#include "tessera/study/break_even.hpp"
#include "tessera/study/forecast_model.hpp"
#include "tessera/study/measured_model.hpp"
#include "tessera/study/planned_model.hpp"
#include "tessera/study/static_model.hpp"
#include "tessera/study/sweep.hpp"
#include "tessera/study/verdict.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

using MaybeMachine = std::optional<device::Machine>;  // none: this computer

// A question about a layer, on a machine or on this computer.
struct Question {
  Problem layer;
  MaybeMachine machine;
  planner::Options options;

  std::string machine_name() const { return machine ? machine->name : device::kHostMachine; }
};

Question question(std::vector<std::int64_t> sizes, std::pair<std::int64_t, std::int64_t> block,
                  double density, const std::string& type, bool backward, MaybeMachine machine,
                  const std::string& options) {
  return {{.size = {1, sizes.at(0), sizes.at(1), sizes.at(2)},
           .block = {block.first, block.second},
           .density = density,
           .data_type = parse_data_type(type),
           .grad_a = backward,
           .grad_w = backward},
          std::move(machine),
          planner::parse_options(options, "options")};
}

std::unique_ptr<study::CostModel> model_of(const Question& asked, const Problem& layer) {
  if (!asked.machine)
    return std::make_unique<study::ForecastModel>(layer,
                                                  host::find_host_rates(study::host_rates_path()));
  return std::make_unique<study::PlannedModel>(layer, *asked.machine, asked.options);
}

// Returns what `work` returns, on a thread that Ctrl-C leaves.
template <class Result>
Result interruptibly(std::function<Result(std::stop_token)> work) {
  const auto result = std::make_shared<Result>();
  run_interruptibly([result, work](std::stop_token stop) { *result = work(stop); });
  return *result;
}

std::string verdict(const Question& asked) {
  return interruptibly<std::string>([asked](std::stop_token) {
    check_problem(asked.layer);
    const auto model = model_of(asked, asked.layer);
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
    const auto model = model_of(asked, asked.layer);
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

study::AdvisedMachine advised(const Question& asked) {
  return {asked.machine_name(), asked.machine ? study::Origin::Planned : study::Origin::Forecast,
          asked.machine ? "" : host::find_host_rates(study::host_rates_path()).note,
          [asked](const Problem& layer) { return model_of(asked, layer); }};
}

std::string advise_file(const std::string& path, const std::string& tensor, const Question& asked) {
  return interruptibly<std::string>([=](std::stop_token stop) {
    const auto goes_on = [stop](const std::string&, const std::string&) {
      return !stop.stop_requested();
    };
    return to_json(study::advise(path, tensor, asked.layer, {advised(asked)}, goes_on,
                                 [](const study::Advice&) {}));
  });
}

std::string advise_matrix(const py::tuple& weights, const Question& asked) {
  const sparse::Csr<float> matrix = csr_from_arrays(MatrixArrays(weights));
  auto ones = std::make_shared<sparse::Csr<double>>(
      sparse::with_block(sparse::cast<double>(matrix), BlockShape{1, 1}));
  std::ranges::fill(ones->values, 1.0);
  return interruptibly<std::string>([asked, ones](std::stop_token) {
    Problem layer = asked.layer;
    layer.size.x = ones->rows;
    layer.size.y = ones->cols;
    check_problem(layer);
    const study::AdvisedMachine machine = advised(asked);
    study::Advice advice{.file = "weights", .asked = layer, .is_complete = true};
    advice.machines.push_back({machine.name,
                               machine.origin,
                               machine.note,
                               {study::advise(*machine.model(layer), *ones, /*in_words=*/true)}});
    advice.machines.front().layers.front().name = "weights";
    return to_json(advice);
  });
}

std::string sweep(const Question& asked,
                  const std::vector<std::pair<std::string, std::vector<double>>>& over) {
  return interruptibly<std::string>([=](std::stop_token stop) {
    study::SweepRequest request{
        .layer = {asked.layer, asked.machine ? *asked.machine : device::machine_preset("gc200")},
        .machine_name = asked.machine_name()};
    request.machine_words = asked.machine ? asked.machine->name : host::host_cpu_model();
    for (const auto& [figure, values] : over) request.axes.push_back({figure, values});
    study::check_axes(request.axes);
    for (const study::SweepAxis& axis : request.axes)
      if (!asked.machine && study::is_of_machine(axis.figure))
        throw Error(ErrorCode::InvalidArgument,
                    "over: " + axis.figure +
                        " belongs to modelled machines, and this computer is measured");
    const auto is_stopped = [stop] { return stop.stop_requested(); };
    if (asked.machine) {
      request.model = [asked](const study::SweepPoint& at) {
        return std::make_unique<study::PlannedModel>(at.problem, at.machine, asked.options);
      };
      request.static_model = [asked, patterns = std::make_shared<study::DrawnPatterns>()](
                                 const study::SweepPoint& at) {
        return std::make_unique<study::StaticModel>(
            at.problem, at.machine,
            planner::StaticOptions{asked.options.available_memory_proportion}, patterns);
      };
    } else {
      request.model = [is_stopped](const study::SweepPoint& at) {
        return std::make_unique<study::MeasuredModel>(at.problem, /*threads=*/0, /*spread=*/0.03,
                                                      is_stopped);
      };
    }
    study::Sweep grid(std::move(request));
    for (std::int64_t at = 0; at < grid.points() && !is_stopped(); ++at)
      grid.add([](const std::function<void()>& change) { change(); });
    return to_json(grid.report());
  });
}

}  // namespace

void add_study(py::module_& module) {
  py::class_<Question>(module, "_Question")
      .def(py::init(&question), "sizes"_a, "block"_a, "density"_a, "dtype"_a, "backward"_a,
           "machine"_a.none(true), "options"_a);
  module.def("_verdict", &verdict, "question"_a);
  module.def("_crossover", &crossover, "question"_a);
  module.def("_advise_file", &advise_file, "path"_a, "tensor"_a, "question"_a);
  module.def("_advise_matrix", &advise_matrix, "weights"_a, "question"_a);
  module.def("_sweep", &sweep, "question"_a, "over"_a);
}

}  // namespace tessera::python
