#include "tessera/tools/run/host_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/load_meter.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/version.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/matmul.hpp"
#include "tessera/study/timing.hpp"
#include "tessera/study/verdict.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/product_layer.hpp"
#include "tessera/tools/run/run_passes.hpp"
#include "tessera/tools/run/weights.hpp"
#include "tessera/verify/repair.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::tools {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A layer on this computer. A pass runs 3 to 25 times to be measured, and once more to be checked.
class HostTarget : public MeasuredTarget {
 public:
  HostTarget(host::HostLayer& layer, const Weights& weights, HostRun& run)
      : MeasuredTarget(layer, weights, run), layer_(layer) {}

  bool run(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
           const FaultOfRun&) override {
    take_times(pass, study::measure([&] { return once(pass, operands, {}); }, is_interrupted));
    if (options.self_check != nullptr)
      once(pass, operands, {.self_check = options.self_check, .repair = options.repair});
    return true;
  }

 protected:
  virtual host::HostTimes once(Pass pass, const layer::Operands& operands,
                               const layer::PassOptions& options) {
    host::HostTimes times;
    static_cast<void>(run_pass(layer_, pass, operands, options, times));
    return times;
  }

 private:
  host::HostLayer& layer_;
};

// A product on this computer, whose operands are those of its layer. They are put in the order in
// which the product's caller stores them before and after the measured runs.
template <class T>
class HostProductTarget final : public HostTarget {
 public:
  HostProductTarget(host::MatMul& product, const Weights& weights, HostRun& run)
      : HostTarget(product.layer(), weights, run), product_(product) {}

  bool run(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
           const FaultOfRun& fault) override {
    dense_ = as_stored<T>(product_.problem(), operands.in.as<T>());
    result_ = stored_result<T>(product_.problem());
    HostTarget::run(pass, operands, options, fault);
    take_result<T>(product_.problem(), std::as_const(result_).view(), operands.out.as<T>());
    return true;
  }

 private:
  host::HostTimes once(Pass pass, const layer::Operands& operands,
                       const layer::PassOptions& options) override {
    if (options.self_check == nullptr) return product_.multiply<T>(dense_.view(), result_.view());
    verify::run_and_repair(options, [&](const layer::PassOptions& with) {
      product_.multiply<T>(dense_.view(), result_.view());
      take_result<T>(product_.problem(), std::as_const(result_).view(), operands.out.as<T>());
      check(pass, operands, *with.self_check);
      return true;
    });
    return {};
  }

  void check(Pass pass, const layer::Operands& operands, verify::Checksums& all) const {
    const MatrixView<const T> in = operands.in.as<T>(), out = operands.out.as<T>();
    const auto groups = std::size_t(product_.problem().groups);
    for (std::size_t g = 0; g < groups; ++g)
      verify::add_group(
          pass, std::int64_t(g),
          verify::check_product<T>(layer().weights(std::int64_t(g)),
                                   rows_of_group(in, in.rows / std::int64_t(groups), g),
                                   rows_of_group(out, out.rows / std::int64_t(groups), g),
                                   layer().rounding(pass)),
          all);
  }

  host::MatMul& product_;
  Matrix<T> dense_, result_;
};

void run_passes_of(PassTarget&& target, const Weights& weights, const Arguments& a, HostRun& run,
                   Progress& progress) {
  const LoadMeter meter;
  const Problem& problem = run.report.problem;
  const std::int64_t ran = run_passes(target, problem, weights, a, run.files, progress);
  run.context.is_partial = ran < std::ssize(run.report.passes);
  run.report.busy = meter.busy(run.report.threads);
  run.report.load = LoadMeter::load();
  run.report.stolen = meter.stolen();
}

void encode_and_run(const Arguments& a, const Weights& weights, const study::Target& here,
                    HostRun& run, Progress& progress) {
  progress.set("encoding");
  report::HostReport& report = run.report;
  // The rates come first, because measuring them starts a thread.
  const host::FoundRates& found = here.rates();
  if (found.origin != host::RatesOrigin::Default) report.thread_peak_flops = found.rates.peak_flops;
  if (!found.note.empty()) run.context.notes.push_back(found.note);
  const auto executor = make_executor(a.threads);
  report.threads = executor->threads();
  const host::HostOptions options{.dense = a.dense, .rates = found.rates};
  std::optional<host::MatMul> product;
  std::optional<host::HostLayer> alone;
  if (a.product)
    product.emplace(product_of(*a.product, report.problem), report.cpu, *executor, options);
  else
    alone.emplace(report.problem, report.cpu, *executor, options);
  host::HostLayer& layer = product ? product->layer() : *alone;
  const auto matrices = weights.matrices();
  const double start = seconds_now();
  layer.set_weights(matrices);
  report.encode_seconds = seconds_now() - start;
  report.values = layer.values();
  for (const Pass pass : passes_of(report.problem))
    report.passes.push_back({.pass = pass,
                             .is_dense = layer.is_dense(pass),
                             .is_packed = layer.is_packed(pass),
                             .cells = layer.cells(pass),
                             .forecast_seconds = layer.forecast(pass).seconds()});
  if (a.stop < StopAfter::Passes) return;
  if (!product) return run_passes_of(HostTarget(layer, weights, run), weights, a, run, progress);
  with_type(report.problem.data_type, [&]<class T>(T) {
    run_passes_of(HostProductTarget<T>(*product, weights, run), weights, a, run, progress);
  });
}

// Compares a run that somebody reads with the dense layer. The pattern of a file is counted in
// blocks of its elements, because the weights of the run are in whole blocks.
void add_dense_verdict(const Arguments& a, const Weights& weights, const study::Target& here,
                       HostRun& run) {
  const bool is_read = !a.quiet || a.json || !a.html.empty() || !a.output_dir.empty();
  if (!is_read || run.context.is_partial || is_interrupted() || a.product) return;
  const auto ones = pattern_of_file(weights);
  const study::Form own{run.report.problem.block, run.report.problem.density,
                        ones ? &*ones : nullptr};
  run.report.verdict = study::host_run_verdict(run.report, own, here.rates(), is_interrupted);
}

}  // namespace

void MeasuredTarget::take_times(Pass pass, const study::MedianTimes& measured) {
  report::HostPassReport& report = report_of(pass);
  report.times = measured.times;
  report.runs = measured.runs;
  report.spread = measured.spread;
}

void MeasuredTarget::take(PassOutcome&& outcome) {
  for (std::string& note : outcome.notes) run_.context.notes.push_back(std::move(note));
  report::HostPassReport& report = report_of(outcome.pass);
  report.verdict = std::move(outcome.verdict);
  report.self_check = std::move(outcome.self_check);
}

report::HostPassReport& MeasuredTarget::report_of(Pass pass) {
  return *std::ranges::find(run_.report.passes, pass, &report::HostPassReport::pass);
}

HostRun run_of(const Arguments& a, const char* program, const Problem& problem,
               const Weights& weights, double empty_outputs, const std::string& block_choice) {
  HostRun run{{.tool = program,
               .version = TESSERA_VERSION,
               .seed = a.seed,
               .configuration = a.configuration,
               .weight_scale = std::ldexp(1.0, weights.scale_exponent)},
              {.source = weights.source,
               .problem = problem,
               .cpu_model = host::host_cpu_model(),
               .cpu = host::read_host_cpu()},
              {},
              empty_outputs};
  if (!block_choice.empty()) run.context.notes.push_back(block_choice);
  return run;
}

HostRun run_on_host(const Arguments& given, const char* program) {
  Arguments a = given;
  Progress progress(a.quiet);
  progress.set("reading");
  std::string block_choice;
  const Weights weights = make_weights_of_run(a, block_choice);
  a.batch_size = batch_of(a, weights);
  HostRun run = run_of(a, program, make_problem(a, weights), weights, weights.share_of_empty_rows(),
                       block_choice);
  if (a.product) run.context.notes.push_back(to_string(product_of(*a.product, run.report.problem)));
  const study::Target here = target_of(a);
  encode_and_run(a, weights, here, run, progress);
  progress.set("comparing with dense");
  add_dense_verdict(a, weights, here, run);
  return run;
}

std::string to_text(const HostRun& run) {
  std::string text;
  for (const std::string& note : run.context.notes) text += fmt::format("note      {}\n", note);
  return text + report::to_text(run.report);
}

ExitCode exit_code_of(const HostRun& run) {
  if (!run.report.ok()) return kCheckFailed;
  return run.context.is_partial ? ExitCode(interrupted_exit_code()) : kOk;
}

}  // namespace tessera::tools
