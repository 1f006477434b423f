#include "tessera/tools/run/pod_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/pod/with_pattern.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/options/study_output.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/ranks.hpp"
#include "tessera/tools/run/trust.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {
namespace {

using study::Cell, study::Chart, study::Table;

constexpr double kMicro = 1e6;

// A pass that ran, with its cost and the check of its results.
struct PassOutcome {
  pod::PodLedger ledger;
  std::optional<verify::Verdict> verdict;
  std::optional<verify::Checksums> checksums;
  std::string fault;  // the outcome of a fault; empty: none was asked for
};

struct PodRun {
  pod::PodPlan plan;
  std::string source;         // of the weights
  std::vector<Bytes> memory;  // [devices in use] of the fullest tile
  std::vector<pod::DevicePlace> places;
  std::vector<PassOutcome> passes;
  std::vector<std::pair<std::string, std::string>> files;
  bool is_partial = false;

  bool ok() const {
    return std::ranges::all_of(
        passes, [](const PassOutcome& pass) { return !pass.verdict || pass.verdict->ok(); });
  }
};

pod::PodPlan plan_of(const Arguments& a, const Problem& problem, const Weights& weights) {
  planner::PlanCache cache(a.plan_cache);
  pod::PodPlan plan = pod_plan_of(a, a.pod, problem, make_options(a, {}), cache);
  return a.plan_file.empty() ? pod::with_pattern(plan, weights.matrices(), &cache) : plan;
}

// Runs the passes of a layer on operands that are read or drawn.
template <class T>
class PodPasses {
 public:
  PodPasses(pod::PodLayer& layer, pod::DeviceSplit* split, const Weights& weights,
            const Arguments& a, PodRun& run, Progress& progress)
      : layer_(layer),
        split_(split),
        weights_(weights),
        a_(a),
        run_(run),
        progress_(progress),
        matrices_(inside(weights)),
        s_(make_s<T>(a, weights)),
        q_grad_(make_q_grad<T>(a, weights)) {
    if (Ranks* const all = ranks()) {
      all->require_same_plan(pod::pod_plan_to_json(run.plan));
      all->require_same_operands(std::as_bytes(std::span(s_.elements())),
                                 std::as_bytes(std::span(q_grad_.elements())));
    }
    if (!a.output_dir.empty())
      keep_operands(std::as_const(s_).view(), std::as_const(q_grad_).view(), run.plan.problem,
                    run.files);
  }

  void go(Pass pass) {
    PassOutcome& outcome = run_.passes.emplace_back();
    switch (pass) {
      case Pass::Fwd:
        return product(pass, matrices_, s_, layer_.plan().problem.size.x, "q.npy", outcome,
                       [&](auto in, auto out, const layer::PassOptions& with) {
                         return layer_.forward<T>(in, out, with, outcome.ledger);
                       });
      case Pass::GradA: {
        std::vector<sparse::CheckedCsr<float>> transposes;
        for (const auto& matrix : matrices_) transposes.push_back(sparse::transpose(matrix));
        return product(pass, transposes, q_grad_, layer_.plan().problem.size.y, "s_gradient.npy",
                       outcome, [&](auto in, auto out, const layer::PassOptions& with) {
                         return layer_.grad_a<T>(in, out, with, outcome.ledger);
                       });
      }
      case Pass::GradW:
        return gradient(outcome);
    }
  }

 private:
  bool is_checked() const {
    return a_.stop == StopAfter::Checks && a_.devices_simulated == 0 && !run_.is_partial;
  }

  // A sample of the devices has no complete results.
  bool writes_results() const { return !a_.output_dir.empty() && a_.devices_simulated == 0; }

  layer::PassOptions options_of(Pass pass, pod::DeviceOptions& target) {
    layer::PassOptions options;
    options.stop = stop_.get_token();
    options.progress = [this, pass](const verify::Progress& step) {
      if (is_interrupted()) stop_.request_stop();
      progress_.set(fmt::format("{}: {}", to_string(pass), step.step));
    };
    target.devices_simulated = a_.devices_simulated;
    target.split = split_;
    options.target = &target;
    return options;
  }

  // Runs a pass, which writes `results`. If a fault is asked for, a run without it comes first, for
  // comparison.
  template <class Results, class Run>
  void trusted(Pass pass, PassOutcome& outcome, const Results& results, Run&& run) {
    pod::DeviceOptions target;
    layer::PassOptions options = options_of(pass, target);
    const bool is_struck = a_.fault && a_.fault->pass == pass;
    Results clean;
    if (is_struck) {
      run_.is_partial |= !run(options);
      clean = results;
      if (run_.is_partial) return;
    }
    if (a_.self_check != SelfCheck::None) options.self_check = &outcome.checksums.emplace();
    options.repair = a_.self_check == SelfCheck::Repair;
    std::optional<device::Struck> struck;
    const std::int64_t device = is_struck ? a_.fault->device.value_or(0) : 0;
    if (is_struck) target.fault = pod::DeviceFault{device, a_.fault->fault};
    target.struck = &struck;
    run_.is_partial |= !run(options);
    if (is_struck)
      outcome.fault =
          fmt::format("fault on device {}: {}", device, fault_note(struck, !(results == clean)));
  }

  template <class Run>
  void product(Pass pass, const std::vector<sparse::CheckedCsr<float>>& matrices,
               const Matrix<T>& in, std::int64_t rows, const char* file, PassOutcome& outcome,
               Run&& run) {
    Matrix<T> out(std::ssize(matrices) * rows, in.cols());
    trusted(pass, outcome, out,
            [&](const layer::PassOptions& options) { return run(in.view(), out.view(), options); });
    const auto result = std::as_const(out).view();
    if (writes_results())
      run_.files.emplace_back(file, result_file(pass, result, weights_.scale_exponent));
    if (is_checked())
      outcome.verdict = verify_groups<T>(matrices, in.view(), result, layer_.rounding(pass));
  }

  void gradient(PassOutcome& outcome) {
    std::vector<float> values(std::size_t(stored_values(weights_)));
    const auto q_grad = std::as_const(q_grad_).view(), s = std::as_const(s_).view();
    trusted(Pass::GradW, outcome, values, [&](const layer::PassOptions& options) {
      return layer_.grad_w<T>(q_grad, s, std::span(values), options, outcome.ledger);
    });
    const std::vector<sparse::Csr<float>> gradients = gradients_inside(std::move(values), weights_);
    if (writes_results()) keep_gradients(gradients, run_.files);
    if (is_checked())
      outcome.verdict =
          verify_gradients<T>(matrices_, gradients, q_grad, s, layer_.rounding(Pass::GradW));
  }

  pod::PodLayer& layer_;
  pod::DeviceSplit* split_;  // null: this process runs all devices
  const Weights& weights_;
  const Arguments& a_;
  PodRun& run_;
  Progress& progress_;
  std::stop_source stop_;
  std::vector<sparse::CheckedCsr<float>> matrices_;
  Matrix<T> s_, q_grad_;
};

void encode_and_run(const Arguments& a, const Weights& weights, PodRun& run, Progress& progress) {
  progress.set("encoding");
  const auto executor = make_executor(a.threads);
  const bool isolate = a.isolate || a.fault;
  pod::PodLayer layer(
      run.plan, isolate ? device::ExchangeMode::Isolate : device::ExchangeMode::Share,
      a.devices_side_by_side ? pod::DeviceOrder::SideBySide : pod::DeviceOrder::OneAfterAnother,
      *executor);
  if (const auto misfit = layer.set_weights(weights.matrices()))
    throw Error(ErrorCode::NoSolution,
                "the pattern does not fit the buckets of " + misfit->message);
  run.places = layer.places();
  for (std::size_t d = 0; d < run.places.size(); ++d) run.memory.push_back(layer.high_water(d));
  if (a.stop < StopAfter::Passes) return;
  pod::DeviceSplit* const split = ranks() == nullptr ? nullptr : &ranks()->device_split();
  const EndsByItself passing;
  with_type(run.plan.problem.data_type, [&]<class T>(T) {
    PodPasses<T> passes(layer, split, weights, a, run, progress);
    for (const Pass pass : passes_of(run.plan.problem)) {
      if (run.is_partial || is_interrupted()) break;
      passes.go(pass);
    }
  });
  run.is_partial |= is_interrupted();
}

Table pass_table(const PodRun& run) {
  Table table{.key = "passes",
              .title = "Passes",
              .note =
                  "Time is modelled: that of the slowest device, of the collectives and of "
                  "a barrier. Planned is the time that the plan expects.",
              .columns = {{"pass", "pass", -1, 1, 6},
                          {"seconds", "us", 2, kMicro, 11},
                          {"device_seconds", "devices", 2, kMicro, 11},
                          {"collective_seconds", "collectives", 2, kMicro, 13},
                          {"planned_seconds", "planned", 2, kMicro, 11},
                          {"slowest_device", "slowest", -1, 1, 9},
                          {"link_bytes", "link MB", 3, 1e-6, 11},
                          {"note", "check", -1, 1, 0}}};
  for (std::size_t p = 0; p < run.passes.size(); ++p) {
    const pod::PodLedger& ledger = run.passes[p].ledger;
    double bytes = 0;
    for (const double level : ledger.level_bytes()) bytes += level;
    Cell slowest;
    for (const pod::PodStep& step : ledger.steps)
      if (step.slowest() != nullptr) slowest = step.slowest()->device;
    const auto& verdict = run.passes[p].verdict;
    table.rows.push_back({to_string(ledger.pass), ledger.seconds(), ledger.device_seconds(),
                          ledger.collective_seconds(), run.plan.passes[p].seconds(), slowest, bytes,
                          (verdict ? to_string(*verdict) : "results were not checked") +
                              (run.passes[p].fault.empty() ? "" : "; " + run.passes[p].fault)});
  }
  table.chart = {.kind = Chart::Kind::Bars,
                 .label = "Microseconds",
                 .x = "pass",
                 .y = {"device_seconds", "collective_seconds"}};
  return table;
}

Table device_table(const PodRun& run) {
  Table table{.key = "devices",
              .title = "Devices",
              .note =
                  "Cycles of all passes, bytes between the tiles of the device, and the "
                  "memory of its fullest tile.",
              .columns = {{"device", "device", -1, 1, 7},
                          {"part", "part", -1, 1, 20},
                          {"cycles", "cycles", -1, 1, 12},
                          {"moved_bytes", "tile MB", 3, 1e-6, 11},
                          {"tile_bytes", "tile B", -1, 1, 9}}};
  for (std::size_t d = 0; d < run.places.size(); ++d) {
    std::int64_t cycles = 0, moved = 0;
    bool ran = run.passes.empty();
    for (const PassOutcome& pass : run.passes)
      for (const pod::PodStep& step : pass.ledger.steps)
        for (const pod::DeviceFigures& device : step.devices)
          if (device.device == run.places[d].device) {
            ran = true;
            cycles += device.cycles.value;
            moved += device.moved.value;
          }
    if (!ran) continue;
    table.rows.push_back({run.places[d].device, to_string(run.places[d].at), cycles, double(moved),
                          run.memory[d].value});
  }
  table.chart = {
      .kind = Chart::Kind::Bars, .label = "Cycles by device", .x = "device", .y = {"cycles"}};
  return table;
}

Table level_table(const PodRun& run) {
  Table table{.key = "levels",
              .title = "Traffic by level",
              .note = "Bytes over the links of each level of the pod, every hop counted.",
              .columns = {{"pass", "pass", -1, 1, 6},
                          {"level", "level", -1, 1, 6},
                          {"kind", "links", -1, 1, 8},
                          {"bytes", "MB", 3, 1e-6, 12}}};
  for (const PassOutcome& pass : run.passes) {
    const std::vector<double> bytes = pass.ledger.level_bytes();
    for (std::size_t l = 0; l < bytes.size(); ++l)
      table.rows.push_back({to_string(pass.ledger.pass), std::int64_t(l),
                            std::string(device::to_string(run.plan.pod.levels[l].kind)), bytes[l]});
  }
  return table;
}

std::string verdict_words(const PodRun& run) {
  double seconds = 0;
  for (const PassOutcome& pass : run.passes) seconds += pass.ledger.seconds();
  std::string words = fmt::format("{:.2f} us on {} of {} devices (modelled)", seconds * kMicro,
                                  run.plan.grid.devices(), run.plan.pod.devices());
  if (run.passes.empty()) return "no pass ran";
  const std::int64_t simulated = run.passes.front().ledger.devices_simulated;
  if (simulated < run.plan.grid.devices())
    words += fmt::format(
        "; {} devices were simulated, the others are taken to be as fast as the "
        "slowest of them, and results are not complete",
        simulated);
  return words;
}

study::Report study_of(const PodRun& run, const char* program) {
  const Problem& problem = run.plan.problem;
  study::Report report{
      .name = "pod",
      .title = fmt::format("{} on {} devices", to_string(problem), run.plan.pod.devices()),
      .subtitle = fmt::format("{}; grid {}", run.source, to_string(run.plan.grid)),
      .is_complete = !run.is_partial,
      .facts = {{"tool", program},
                {"layer", to_string(problem)},
                {"weights", run.source},
                {"pod", run.plan.pod.name},
                {"devices", run.plan.pod.devices()},
                {"grid", to_string(run.plan.grid)},
                {"serial_parts", run.plan.serial_parts},
                {"planned_seconds", run.plan.seconds()},
                {"how", "modelled"}},
      .tables = {pass_table(run), device_table(run), level_table(run)},
      .verdict = verdict_words(run)};
  return report;
}

std::string text_of(const Arguments& a, const PodRun& run, const study::Report& report) {
  std::string text = to_string(run.plan) + "\n";
  for (const PassOutcome& pass : run.passes) {
    text += to_string(pass.ledger);
    if (!pass.fault.empty()) text += "  " + pass.fault + "\n";
    if (pass.checksums) text += "  " + self_check_note(pass.ledger.pass, *pass.checksums) + "\n";
    if (pass.verdict) text += "  check      " + to_string(*pass.verdict) + "\n";
  }
  if (a.report_plan)
    for (const pod::DeviceShape& shape : run.plan.shapes)
      text += fmt::format("\nplan of {}\n{}", to_string(shape.size), to_string(shape.plan));
  return text + "verdict    " + report.verdict + "\n";
}

void write_files(const Arguments& a, const PodRun& run, const study::Report& report) {
  if (!a.trace.empty()) {
    std::vector<pod::PodLedger> ledgers;
    for (const PassOutcome& pass : run.passes) ledgers.push_back(pass.ledger);
    write_results(a.trace, pod::trace_json(ledgers, run.plan.pod.machine.clock_hz));
  }
  if (a.output_dir.empty()) return;
  auto files = run.files;
  files.emplace_back("plan.json", pod::pod_plan_to_json(run.plan));
  files.emplace_back("report.json", study::to_json(report));
  write_folder(a.output_dir, files);
}

}  // namespace

int run_pod_and_print(const Arguments& given, const char* program) {
  Arguments a = given;
  Ranks* const all = ranks();
  if (all != nullptr) {
    all->require_same_options(a);
    a.seed = all->seed_of_all(a.seed);
  }
  const bool speaks = all == nullptr || all->rank() == 0;
  Progress progress(a.quiet || !speaks);
  progress.set("reading");
  const Weights weights = make_weights(a);
  a.batch_size = batch_of(a, weights);
  const Problem problem = make_problem(a, weights);
  if (all != nullptr) {
    all->require_same_problem(problem);
    all->require_same_weights(weights.matrices());
  }
  progress.set("planning");
  PodRun run{plan_of(a, problem, weights), weights.source, {}, {}, {}, {}, false};
  encode_and_run(a, weights, run, progress);
  progress.hide();
  if (!speaks) return run.ok() ? int(kOk) : int(kCheckFailed);
  const study::Report report = study_of(run, program);
  write_files(a, run, report);
  const std::string text = a.quiet ? std::string() : text_of(a, run, report);
  const int exit = write_study({a.json, a.csv, a.html}, report, text);
  return run.ok() ? exit : int(kCheckFailed);
}

}  // namespace tessera::tools
