#include "tessera/tools/run/host_run.hpp"

#include <fmt/format.h>

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
#include "tessera/sparse/convert.hpp"
#include "tessera/study/timing.hpp"
#include "tessera/study/verdict.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/models.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/product_layer.hpp"
#include "tessera/tools/run/trust.hpp"
#include "tessera/tools/run/weights.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::tools {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The layer with operands for the whole batch.
template <class T>
class HostPasses {
 public:
  // `product` is null unless the passes are those of a product, whose layer is `layer`.
  HostPasses(host::HostLayer& layer, host::MatMul* product, const Weights& weights,
             const Arguments& a, HostRun& run)
      : layer_(layer),
        product_(product),
        weights_(weights),
        run_(run),
        self_check_(a.self_check),
        is_checked_(a.stop == StopAfter::Checks),
        is_kept_(!a.output_dir.empty()),
        matrices_(inside(weights)),
        s_(make_s<T>(a, weights)),
        q_grad_(make_q_grad<T>(a, weights)) {
    if (is_kept_)
      keep_operands(std::as_const(s_).view(), std::as_const(q_grad_).view(), run.report.problem,
                    run.files);
  }

  void go(report::HostPassReport& report) {
    if (report.pass == Pass::GradW) return gradient(report);
    if (product_ != nullptr) return multiply(report);
    const auto is_there = [](auto) {};
    if (report.pass == Pass::Fwd)
      return product(
          matrices_, s_, report, [this](auto in, auto out) { return layer_.forward<T>(in, out); },
          is_there);
    Matrices transposes;
    for (const auto& matrix : matrices_) transposes.push_back(sparse::transpose(matrix));
    product(
        transposes, q_grad_, report,
        [this](auto in, auto out) { return layer_.grad_a<T>(in, out); }, is_there);
  }

 private:
  using Matrices = std::vector<sparse::CheckedCsr<float>>;

  // The operands of the product, as its caller stores them, are made before the time is measured.
  void multiply(report::HostPassReport& report) {
    const MatMulProblem& problem = product_->problem();
    const Matrix<T> dense = as_stored<T>(problem, std::as_const(s_).view());
    const MatrixShape shape = result_shape(problem);
    Matrix<T> result(problem.groups * shape.rows, shape.cols);
    product(
        matrices_, s_, report,
        [&](auto, auto) { return product_->multiply<T>(dense.view(), result.view()); },
        [&](auto out) { take_result<T>(problem, std::as_const(result).view(), out); });
  }

  static void take(const study::MedianTimes& measured, report::HostPassReport& report) {
    report.times = measured.times;
    report.runs = measured.runs;
    report.spread = measured.spread;
  }

  // Checks the results of a pass if that is wanted; run_again() computes them once more.
  template <class Check, class Run>
  void trust(report::HostPassReport& report, Check&& check, Run&& run_again) {
    if (self_check_ == SelfCheck::None) return;
    verify::Checksums checksums = check();
    if (self_check_ == SelfCheck::Repair && !checksums.ok()) {
      const std::string failure = to_string(checksums);
      run_again();
      checksums = check();
      checksums.first_failure = failure;
    }
    verify::require_agreement(report.pass, 0, checksums);
    run_.context.notes.push_back(self_check_note(report.pass, checksums));
    report.self_check = std::move(checksums);
  }

  // Measures run(in, out); take_out(out) then brings the result there, if run() does not.
  template <class Run, class TakeOut>
  void product(const Matrices& matrices, const Matrix<T>& in, report::HostPassReport& report,
               const Run& run, const TakeOut& take_out) {
    Matrix<T> out(std::ssize(matrices) * matrices[0]->rows, in.cols());
    take(study::measure([&] { return run(in.view(), out.view()); }, is_interrupted), report);
    take_out(out.view());
    const auto result = std::as_const(out).view();
    if (is_kept_)
      run_.files.emplace_back(report.pass == Pass::Fwd ? "q.npy" : "s_gradient.npy",
                              result_file(report.pass, result, weights_.scale_exponent));
    const verify::Rounding rounding = layer_.rounding(report.pass);
    const auto check = [&](std::size_t g) {
      const sparse::Csr<float>& matrix = *matrices[g];
      return verify::check_product<T>(matrix,
                                      rows_of_group(std::as_const(in).view(), matrix.cols, g),
                                      rows_of_group(result, matrix.rows, g), rounding);
    };
    trust(
        report, [&] { return checksums(matrices.size(), check); },
        [&] {
          run(in.view(), out.view());
          take_out(out.view());
        });
    if (is_checked_) report.verdict = verify_groups<T>(matrices, in.view(), result, rounding);
  }

  // Returns the checksums of all groups, or those of the first group that is wrong.
  template <class Check>
  static verify::Checksums checksums(std::size_t groups, const Check& check) {
    verify::Checksums all;
    for (std::size_t g = 0; g < groups; ++g) {
      verify::Checksums of_this = check(g);
      if (!of_this.ok()) return of_this;
      verify::add_part(of_this, all);
    }
    return all;
  }

  void gradient(report::HostPassReport& report) {
    std::vector<float> values(std::size_t(stored_values(weights_)));
    const auto q_grad = std::as_const(q_grad_).view(), s = std::as_const(s_).view();
    take(study::measure([&] { return layer_.grad_w<T>(q_grad, s, values); }, is_interrupted),
         report);
    std::vector<sparse::Csr<float>> gradients = gradients_inside(values, weights_);
    if (is_kept_) keep_gradients(gradients, run_.files);
    const verify::Rounding rounding = layer_.rounding(report.pass);
    const auto check = [&](std::size_t g) {
      return verify::check_gradient<T>(gradients[g], gradients[g].values,
                                       rows_of_group(q_grad, gradients[g].rows, g),
                                       rows_of_group(s, gradients[g].cols, g), rounding);
    };
    trust(
        report, [&] { return checksums(gradients.size(), check); },
        [&] {
          layer_.grad_w<T>(q_grad, s, values);
          gradients = gradients_inside(values, weights_);
        });
    if (is_checked_)
      report.verdict = verify_gradients<T>(matrices_, gradients, q_grad, s, rounding);
  }

  host::HostLayer& layer_;
  host::MatMul* product_;
  const Weights& weights_;
  HostRun& run_;
  SelfCheck self_check_;
  bool is_checked_, is_kept_;
  Matrices matrices_;  // the weights inside the layer, by group
  Matrix<T> s_, q_grad_;
};

template <class T>
void run_typed(HostPasses<T> passes, HostRun& run, Progress& progress) {
  const EndsByItself passing;
  std::int64_t done = 0;
  for (report::HostPassReport& pass : run.report.passes) {
    run.context.is_partial |= is_interrupted();
    if (run.context.is_partial) return;
    progress.set(to_string(pass.pass), done++, std::ssize(run.report.passes));
    passes.go(pass);
  }
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
  std::vector<sparse::Csr<float>> matrices;
  for (const auto& matrix : weights.matrices()) matrices.push_back(*matrix);
  const double start = seconds_now();
  layer.set_weights(sparse::checked(matrices));
  report.encode_seconds = seconds_now() - start;
  report.values = layer.values();
  for (const Pass pass : passes_of(report.problem))
    report.passes.push_back({.pass = pass,
                             .is_dense = layer.is_dense(pass),
                             .is_packed = layer.is_packed(pass),
                             .cells = layer.cells(pass),
                             .forecast_seconds = layer.forecast(pass).seconds()});
  if (a.stop < StopAfter::Passes) return;
  const LoadMeter meter;
  with_type(report.problem.data_type, [&]<class T>(T) {
    run_typed(HostPasses<T>(layer, product ? &*product : nullptr, weights, a, run), run, progress);
  });
  report.busy = meter.busy(report.threads);
  report.load = LoadMeter::load();
  report.stolen = meter.stolen();
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
