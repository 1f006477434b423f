#include "tessera/tools/sparse_fc_layer/host_run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "tessera/base/executor.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tools/block_choice.hpp"
#include "tessera/tools/block_study.hpp"
#include "tessera/tools/host_verdict.hpp"
#include "tessera/tools/inputs.hpp"
#include "tessera/tools/internal/host_timing.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/internal/progress.hpp"
#include "tessera/tools/sparse_fc_layer/operands.hpp"
#include "tessera/tools/sparse_fc_layer/trust.hpp"
#include "tessera/tools/sparse_fc_layer/weights.hpp"
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
  HostPasses(host::HostLayer& layer, const Weights& weights, const Arguments& a, HostRun& run)
      : layer_(layer),
        weights_(weights),
        run_(run),
        self_check_(a.self_check),
        is_checked_(a.stop == StopAfter::Checks),
        is_kept_(!a.output_dir.empty()),
        matrix_(inside(weights)),
        s_(make_s<T>(a, weights)),
        q_grad_(make_q_grad<T>(a, weights)) {
    if (is_kept_)
      keep_operands(std::as_const(s_).view(), std::as_const(q_grad_).view(), run.report.problem,
                    run.files);
  }

  void go(report::HostPassReport& report) {
    if (report.pass == Pass::GradW) return gradient(report);
    if (report.pass == Pass::Fwd)
      return product(*matrix_, s_, report,
                     [this](auto in, auto out) { return layer_.forward<T>(in, out); });
    product(*sparse::transpose(matrix_), q_grad_, report,
            [this](auto in, auto out) { return layer_.grad_a<T>(in, out); });
  }

 private:
  static void take(const internal::MedianTimes& measured, report::HostPassReport& report) {
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

  template <class Run>
  void product(const sparse::Csr<float>& matrix, const Matrix<T>& in,
               report::HostPassReport& report, const Run& run) {
    Matrix<T> out(matrix.rows, in.cols());
    take(internal::measure([&] { return run(in.view(), out.view()); }), report);
    const auto result = std::as_const(out).view();
    if (is_kept_)
      run_.files.emplace_back(report.pass == Pass::Fwd ? "q.npy" : "s_gradient.npy",
                              result_file(report.pass, result, weights_.scale_exponent));
    const verify::Rounding rounding = layer_.rounding(report.pass);
    trust(
        report, [&] { return verify::check_product<T>(matrix, in.view(), result, rounding); },
        [&] { run(in.view(), out.view()); });
    if (is_checked_)
      report.verdict = verify::verify_product<T>(matrix, in.view(), result, rounding);
  }

  void gradient(report::HostPassReport& report) {
    sparse::Csr<float> gradient = *weights_.matrix;
    const auto q_grad = std::as_const(q_grad_).view(), s = std::as_const(s_).view();
    take(internal::measure([&] { return layer_.grad_w<T>(q_grad, s, gradient.values); }), report);
    sparse::Csr<float> result = inside(std::move(gradient), weights_);
    if (is_kept_ && io::can_read_npz())
      run_.files.emplace_back("weight_gradient.npz", io::write_npz(result));
    const verify::Rounding rounding = layer_.rounding(report.pass);
    trust(
        report, [&] { return verify::check_gradient<T>(result, q_grad, s, rounding); },
        [&] {
          sparse::Csr<float> again = *weights_.matrix;
          layer_.grad_w<T>(q_grad, s, again.values);
          result = inside(std::move(again), weights_);
        });
    if (is_checked_)
      report.verdict = verify::verify_gradient<T>(*matrix_, result, q_grad, s, rounding);
  }

  host::HostLayer& layer_;
  const Weights& weights_;
  HostRun& run_;
  SelfCheck self_check_;
  bool is_checked_, is_kept_;
  sparse::CheckedCsr<float> matrix_;  // the weights inside the layer
  Matrix<T> s_, q_grad_;
};

template <class T>
void run_typed(HostPasses<T> passes, HostRun& run, internal::Progress& progress) {
  const internal::EndsByItself passing;
  std::int64_t done = 0;
  for (report::HostPassReport& pass : run.report.passes) {
    run.context.is_partial |= internal::is_interrupted();
    if (run.context.is_partial) return;
    progress.set(to_string(pass.pass), done++, std::ssize(run.report.passes));
    passes.go(pass);
  }
}

void encode_and_run(const Arguments& a, const Weights& weights, HostRun& run,
                    internal::Progress& progress) {
  progress.set("encoding");
  report::HostReport& report = run.report;
  // The rates come first, because measuring them starts a thread.
  const host::FoundRates found = host::find_host_rates(host_rates_path());
  if (found.origin != host::RatesOrigin::Default) report.thread_peak_flops = found.rates.peak_flops;
  if (!found.note.empty()) run.context.notes.push_back(found.note);
  const auto executor = make_executor(a.threads);
  report.threads = executor->threads();
  host::HostLayer layer(report.problem, report.cpu, *executor,
                        {.dense = a.dense, .rates = found.rates});
  const double start = seconds_now();
  layer.set_weights(*weights.matrix);
  report.encode_seconds = seconds_now() - start;
  report.values = layer.values();
  for (const Pass pass : passes_of(report.problem))
    report.passes.push_back({.pass = pass,
                             .is_dense = layer.is_dense(pass),
                             .cells = layer.cells(pass),
                             .forecast_seconds = layer.forecast(pass).seconds()});
  if (a.stop < StopAfter::Passes) return;
  with_type(report.problem.data_type,
            [&]<class T>(T) { run_typed(HostPasses<T>(layer, weights, a, run), run, progress); });
}

// Compares a run that somebody reads with the dense layer. The pattern of a file is counted in
// blocks of its elements, because the weights of the run are in whole blocks.
void add_verdict(const Arguments& a, HostRun& run) {
  const bool is_read = !a.quiet || a.json || !a.html.empty() || !a.output_dir.empty();
  if (!is_read || run.context.is_partial || internal::is_interrupted()) return;
  LayerArguments file = a;
  const auto ones = load_pattern(file);
  run.report.verdict = host_run_verdict(a, run.report, [&](BlockShape block) {
    if (ones) return double(in_whole_blocks(*ones, block).blocks());
    return expected_blocks(run.report.problem, block);
  });
}

}  // namespace

HostRun run_on_host(const Arguments& given, const char* program) {
  Arguments a = given;
  internal::Progress progress(a.quiet);
  progress.set("reading");
  const std::string block_choice = choose_block(a, {});
  const Weights weights = make_weights(a);
  a.batch_size = batch_of(a, weights);
  HostRun run{{.tool = program,
               .version = TESSERA_VERSION,
               .seed = a.seed,
               .configuration = a.configuration,
               .weight_scale = std::ldexp(1.0, weights.scale_exponent)},
              {.source = weights.source,
               .problem = make_problem(a, weights),
               .cpu_model = host::host_cpu_model(),
               .cpu = host::read_host_cpu()},
              {},
              share_without_blocks(*weights.matrix)};
  if (!block_choice.empty()) run.context.notes.push_back(block_choice);
  encode_and_run(a, weights, run, progress);
  progress.set("comparing with dense");
  add_verdict(a, run);
  return run;
}

std::string to_text(const HostRun& run) {
  std::string text;
  for (const std::string& note : run.context.notes) text += fmt::format("note      {}\n", note);
  return text + report::to_text(run.report);
}

ExitCode exit_code_of(const HostRun& run) {
  if (!run.report.ok()) return kCheckFailed;
  return run.context.is_partial ? ExitCode(internal::interrupted_exit_code()) : kOk;
}

}  // namespace tessera::tools
