#include "tessera/python/src/simulate.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/version.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/interrupt.hpp"
#include "tessera/python/src/method.hpp"
#include "tessera/python/src/plan.hpp"
#include "tessera/python/src/tensor.hpp"
#include "tessera/report/report.hpp"
#include "tessera/report/report_json.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/value_range.hpp"
#include "tessera/tools/page/report_page.hpp"
#include "tessera/verify/verify.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

// The operands and options of a simulation. The thread that runs it owns everything.
template <class T>
struct Request {
  Plan plan;
  sparse::CheckedCsr<float> weights;
  Matrix<T> s, dq;  // dq is empty without the backward passes
  int threads = 1;
};

template <class T>
struct Results {
  report::LayerReport report;
  Matrix<T> q, ds;
  std::vector<float> dw;
};

// A run of a layer on a modelled machine: its figures and results.
struct Run {
  report::LayerReport report;
  report::ReportContext context;
  py::dict results;
};

}  // namespace
}  // namespace tessera::python

template <>
struct pybind11::detail::type_caster<tessera::python::Run>
    : tessera::python::MadeCaster<tessera::python::Run> {};

namespace tessera::python {
namespace {

template <class T>
Matrix<T> copied(py::handle object, const char* name, DataType type, std::int64_t rows) {
  const Tensor tensor(object, name, type, Access::Read);
  const auto from = tensor.matrix<const T>();
  if (from.rows != rows)
    throw Error(ErrorCode::InvalidArgument, std::string(name) + " has " +
                                                std::to_string(from.rows) + " rows; it needs " +
                                                std::to_string(rows));
  Matrix<T> to(from.rows, from.cols);
  for (std::int64_t r = 0; r < from.rows; ++r)
    for (std::int64_t c = 0; c < from.cols; ++c) to(r, c) = from(r, c);
  return to;
}

template <class T>
py::array to_numpy(const Matrix<T>& from, DataType type) {
  py::array to = new_array(type, {from.rows(), from.cols()});
  std::copy(from.elements().begin(), from.elements().end(), static_cast<T*>(to.mutable_data()));
  return to;
}

[[noreturn]] void stopped() { throw Error(ErrorCode::InvalidArgument, "simulate: interrupted"); }

// One simulation, on the thread of run_interruptibly.
template <class T>
class Simulation {
 public:
  Simulation(const Request<T>& request, std::stop_token stop)
      : request_(request),
        executor_(make_executor(request.threads)),
        layer_(planned().problem, planned().plan, planned().machine, device::ExchangeMode::Share,
               *executor_) {
    options_.stop = std::move(stop);
  }

  Results<T> run() {
    set_weights();
    const sparse::Csr<float>& weights = *request_.weights;
    out_.q = Matrix<T>(weights.rows, request_.s.cols());
    pass(Pass::Fwd, [&](device::Ledger& ledger) {
      return layer_.template forward<T>(request_.s.view(), out_.q.view(), options_, ledger);
    });
    check(Pass::Fwd, weights, request_.s, out_.q);
    if (!planned().problem.grad_a) return std::move(out_);
    out_.ds = Matrix<T>(weights.cols, request_.s.cols());
    pass(Pass::GradA, [&](device::Ledger& ledger) {
      return layer_.template grad_a<T>(request_.dq.view(), out_.ds.view(), options_, ledger);
    });
    check(Pass::GradA, sparse::transpose(weights), request_.dq, out_.ds);
    out_.dw.resize(weights.values.size());
    pass(Pass::GradW, [&](device::Ledger& ledger) {
      return layer_.template grad_w<T>(request_.dq.view(), request_.s.view(),
                                       std::span<float>(out_.dw), options_, ledger);
    });
    sparse::Csr<float> gradient = weights;
    gradient.values = out_.dw;
    out_.report.passes.back().verdict = verify::verify_gradient<T>(
        weights, gradient, request_.dq.view(), request_.s.view(), rounding(Pass::GradW));
    return std::move(out_);
  }

 private:
  const planner::PlannedLayer& planned() const { return request_.plan.planned; }

  void set_weights() {
    if (const auto misfit = layer_.set_weights(request_.weights))
      throw Error(ErrorCode::NoSolution,
                  misfit->message +
                      "; raise the option metaInfoBucketOversizeProportion, or plan with the "
                      "pattern: ts.simulate(w, ...) does");
    report::LayerReport& report = out_.report;
    report.source = "Python";
    report.problem = planned().problem;
    report.plan = planned().plan;
    report.machine = planned().machine;
    // A dense plan has no grid of buckets; reports take the block of the weights from it.
    report.grid = report.plan.dense
                      ? partitioner::TileGrid{.block = report.problem.block}
                      : runtime::tile_grid(report.problem, report.plan, report.machine);
    report.dense = request_.plan.dense;
    report.sparse = request_.plan.sparse;
    report.spill = layer_.spill();
    report.travel = layer_.travel();
    report.pattern_bytes = layer_.pattern_bytes();
    report.high_water = layer_.high_water();
  }

  template <class Call>
  void pass(Pass name, Call&& call) {
    report::PassReport done{name, {}, {}};
    if (!call(done.ledger)) stopped();
    out_.report.passes.push_back(std::move(done));
  }

  void check(Pass name, const sparse::Csr<float>& matrix, const Matrix<T>& in,
             const Matrix<T>& out) {
    out_.report.passes.back().verdict =
        verify::verify_product<T>(matrix, in.view(), out.view(), rounding(name));
  }

  verify::Rounding rounding(Pass name) const {
    return {planned().problem.data_type, planned().problem.partials_type,
            planner::partial_sums(planned().plan, name)};
  }

  const Request<T>& request_;
  std::unique_ptr<Executor> executor_;
  runtime::FullyConnected layer_;
  layer::PassOptions options_;
  Results<T> out_;
};

template <class T>
sparse::Csr<float> rounded(sparse::Csr<float> weights) {
  for (float& value : weights.values) value = float(T(value));
  return weights;
}

template <class T>
Run simulate_as(sparse::Csr<float> weights, py::handle s, py::handle dq, DataType type,
                const device::Machine& machine, const planner::Options& options, int threads) {
  const auto request = std::make_shared<Request<T>>();
  request->s = copied<T>(s, "s", type, weights.cols);
  const bool backward = !dq.is_none();
  if (backward) request->dq = copied<T>(dq, "dq", type, weights.rows);
  if (backward && request->dq.cols() != request->s.cols())
    throw Error(ErrorCode::InvalidArgument, "dq and s have different batches");
  const Problem problem = {.size = {1, weights.rows, weights.cols, request->s.cols()},
                           .block = weights.block,
                           .density = double(weights.values.size()) /
                                      std::max(1.0, double(weights.rows) * double(weights.cols)),
                           .data_type = type,
                           .grad_a = backward,
                           .grad_w = backward};
  sparse::check_range(weights.values, type);  // rounded values would be infinite
  request->weights = sparse::checked(rounded<T>(std::move(weights)));
  request->plan = make_plan(problem, machine, options, sparse::pattern_stats(request->weights));
  request->threads = threads;
  const auto results = std::make_shared<Results<T>>();
  run_interruptibly([request, results](std::stop_token stop) {
    *results = Simulation<T>(*request, std::move(stop)).run();
  });
  Run run{std::move(results->report), {.tool = "tessera (Python)", .version = TESSERA_VERSION}, {}};
  run.context.options = options;
  run.results[python_name(Pass::Fwd)] = to_numpy(results->q, type);
  if (!backward) return run;
  run.results[python_name(Pass::GradA)] = to_numpy(results->ds, type);
  sparse::Csr<float> gradient = *request->weights;
  gradient.values = std::move(results->dw);
  run.results[python_name(Pass::GradW)] = arrays_from_csr(gradient)[2];
  return run;
}

Run simulate(const py::tuple& matrix, py::handle s, py::handle dq, const std::string& type,
             const device::Machine& machine, const std::string& options, int threads) {
  const DataType data_type = parse_data_type(type);
  return with_type(data_type, [&]<class T>(T) {
    return simulate_as<T>(csr_from_arrays(MatrixArrays(matrix)), s, dq, data_type, machine,
                          planner::parse_options(options, "options"), threads);
  });
}

std::int64_t cycles_of(const report::LayerReport& report) {
  std::int64_t sum = 0;
  for (const report::PassReport& pass : report.passes) sum += pass.ledger.total().value;
  return sum;
}

py::dict cycles_by_pass(const Run& run) {
  py::dict all;
  for (const report::PassReport& pass : run.report.passes)
    all[python_name(pass.pass)] = pass.ledger.total().value;
  return all;
}

void write_page(const Run& run, const py::object& path) {
  write_file(path_of(path), tools::report_page(report::to_json(run.report, run.context),
                                               {.date = tools::date_of_today()}));
}

}  // namespace

void add_simulate(py::module_& module) {
  py::class_<Run> type(module, "Run");
  refuse_construction(type, "ts.simulate(...)");
  add_method(type, "table", "table()",
             "Return the report as text: layer, plan, buckets, cycles of each phase, verdicts.",
             [](const Run& run) { return report::to_text(run.report); });
  add_method(type, "to_json", "to_json()", "Return the report as JSON by docs/report.schema.json.",
             [](const Run& run) { return report::to_json(run.report, run.context); });
  add_method(type, "to_html", "to_html(path)",
             "Write the report as one HTML page with charts, which needs no other file and no "
             "network.\n\nRaises ts.InvalidArgument if this module was built without the chart "
             "library, and if the file cannot be written.",
             &write_page, "path"_a);
  add_method(type, "to_csv", "to_csv()", "Return one CSV row for each pass and phase.",
             [](const Run& run) { return report::to_csv(run.report, run.context); });
  type.def_property_readonly(
          "cycles", [](const Run& run) { return cycles_of(run.report); },
          "Modelled cycles of all passes.")
      .def_property_readonly("pass_cycles", &cycles_by_pass, "Modelled cycles of each pass.")
      .def_property_readonly(
          "seconds",
          [](const Run& run) {
            return double(cycles_of(run.report)) / run.report.machine.clock_hz;
          },
          "Modelled time of all passes by the machine's clock.")
      .def_property_readonly(
          "ok", [](const Run& run) { return run.report.ok(); },
          "True if every result is within its rounding bound.")
      .def_property_readonly(
          "tile_bytes", [](const Run& run) { return run.report.high_water.value; },
          "Bytes on the fullest tile.")
      .def_property_readonly("request",
                             [](const Run& run) { return to_string(run.report.problem); })
      .def_property_readonly("machine", [](const Run& run) { return run.report.machine; })
      .def_readonly("results", &Run::results,
                    "Arrays by pass: fwd is Q, grad_a is dS, grad_w belongs to the weights' data.");
  module.def("_simulate", &simulate, "matrix"_a, "s"_a, "dq"_a, "dtype"_a, "machine"_a, "options"_a,
             "threads"_a);
}

}  // namespace tessera::python
