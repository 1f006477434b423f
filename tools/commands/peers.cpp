#include "tessera/tools/commands/peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/base/executor.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tools/commands/peer_product.hpp"
#include "tessera/tools/options/dense_verdict.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/study_output.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/weights.hpp"

namespace tessera::tools {
namespace {

using Json = nlohmann::ordered_json;

// The operands of one layer, and its libraries.
template <class T>
class PeerLayer {
 public:
  PeerLayer(const Arguments& a, const Weights& weights, bool check, PeerRun& run)
      : executor_(make_executor(a.threads)),
        own_(make_problem(a, weights), host::read_host_cpu(), *executor_),
        dense_(make_problem(a, weights), host::read_host_cpu(), *executor_,
               {.dense = host::DenseChoice::Always, .rates = {}}),
        weights_(weights),
        elements_(sparse::with_block(*inside(weights)[0], {1, 1})),
        check_(check),
        run_(run),
        s_(make_s<T>(a, weights)),
        q_grad_(make_q_grad<T>(a, weights)) {
    own_.set_weights(*weights.matrix);
    dense_.set_weights(*weights.matrix);
    run.threads = executor_->threads();
  }

  void run(Pass pass) {
    PeerPass result{.pass = pass,
                    .useful_flops = 2.0 * double(elements_.blocks()) * double(s_.cols()),
                    .times = {}};
    if (pass == Pass::GradW)
      gradients(result);
    else
      products(result);
    run_.passes.push_back(std::move(result));
  }

 private:
  static std::string dense_name() { return "dense (" + host::dense_kernel_name() + ")"; }

  void add(const std::string& name, const study::MedianTimes& times,
           const std::optional<verify::Verdict>& verdict, PeerPass& result) {
    PeerTime time{.name = name,
                  .seconds = times.times.seconds,
                  .spread = times.spread,
                  .verdict = verdict ? to_string(*verdict) : std::string(),
                  .is_wrong = verdict && !verdict->ok()};
    result.times.push_back(std::move(time));
  }

  void products(PeerPass& result) {
    const bool is_fwd = result.pass == Pass::Fwd;
    const sparse::Csr<float> matrix = is_fwd ? elements_ : sparse::transpose(elements_);
    const Matrix<T>& in = is_fwd ? s_ : q_grad_;
    Matrix<T> out(matrix.rows, in.cols());
    const auto verdict = [&]<class R>(MatrixView<const R> operand, const Matrix<R>& found,
                                      const verify::Rounding& rounding) {
      if (!check_) return std::optional<verify::Verdict>();
      return std::optional(verify::verify_product<R>(matrix, operand, found.view(), rounding));
    };
    for (const auto& [name, layer] :
         {std::pair(std::string("own"), &own_), {dense_name(), &dense_}}) {
      const auto run_pass = [&] {
        return is_fwd ? layer->template forward<T>(in.view(), out.view())
                      : layer->template grad_a<T>(in.view(), out.view());
      };
      const study::MedianTimes times = study::measure(run_pass, is_interrupted);
      add(name, times, verdict(in.view(), out, layer->rounding(result.pass)), result);
    }
    const Matrix<float> operand = in_floats(in);
    Matrix<float> found(matrix.rows, in.cols());
    const auto other_verdict = [&] { return verdict(operand.view(), found, kInFloat); };
    add_others([&] { return eigen_product(matrix, operand, found, run_.threads); },
               [&] { return scipy_product(matrix, operand, found); }, other_verdict, result);
  }

  static Matrix<float> in_floats(const Matrix<T>& values) {
    Matrix<float> floats(values.rows(), values.cols());
    std::ranges::transform(values.elements(), floats.elements().begin(),
                           [](T value) { return float(value); });
    return floats;
  }

  // Adds the times of other libraries. `verdict` judges the result of the one that ran last.
  template <class Eigen, class SciPy, class Verdict>
  void add_others(const Eigen& eigen, const SciPy& scipy, const Verdict& verdict,
                  PeerPass& result) {
    const auto add_other = [&](const std::string& name, const char* package,
                               const std::optional<study::MedianTimes>& times) {
      if (times)
        add(name, *times, verdict(), result);
      else if (run_.passes.empty() && !is_interrupted())
        run_.missing.push_back(name + ": " + package);
    };
    add_other("Eigen", "install libeigen3-dev and build tessera again", eigen());
    if (is_interrupted()) return;
    add_other("SciPy", "install python3-scipy", scipy());
  }

  void gradients(PeerPass& result) {
    const auto q_grad = std::as_const(q_grad_).view(), s = std::as_const(s_).view();
    for (const auto& [name, layer] :
         {std::pair(std::string("own"), &own_), {dense_name(), &dense_}}) {
      sparse::Csr<float> gradient = *weights_.matrix;
      const auto run_pass = [&] { return layer->template grad_w<T>(q_grad, s, gradient.values); };
      const study::MedianTimes times = study::measure(run_pass, is_interrupted);
      std::optional<verify::Verdict> verdict;
      if (check_)
        verdict =
            verify::verify_gradient<T>(*inside(weights_)[0], inside(std::move(gradient), weights_),
                                       q_grad, s, layer->rounding(Pass::GradW));
      add(name, times, verdict, result);
    }
    other_gradients(result);
  }

  void other_gradients(PeerPass& result) {
    const Matrix<float> q_grad = in_floats(q_grad_), s = in_floats(s_);
    sparse::Csr<float> gradient = elements_;
    const auto verdict = [&] {
      if (!check_) return std::optional<verify::Verdict>();
      return std::optional(
          verify::verify_gradient<float>(elements_, gradient, q_grad.view(), s.view(), kInFloat));
    };
    add_others([&] { return eigen_gradient(gradient, q_grad, s, run_.threads); },
               [&] { return scipy_gradient(gradient, q_grad, s); }, verdict, result);
  }

  static constexpr verify::Rounding kInFloat = {};

  std::unique_ptr<Executor> executor_;
  host::HostLayer own_, dense_;
  const Weights& weights_;
  sparse::Csr<float> elements_;  // the weights inside the layer
  bool check_;
  PeerRun& run_;
  Matrix<T> s_, q_grad_;
};

double gigaflops(const PeerPass& pass, const PeerTime& time) {
  return time.seconds > 0 ? pass.useful_flops / time.seconds * 1e-9 : 0;
}

// Returns which library is the fastest, and how much faster it is than the next.
std::string fastest_text(const PeerPass& pass) {
  std::vector<const PeerTime*> order;
  for (const PeerTime& time : pass.times) order.push_back(&time);
  std::ranges::sort(order, {}, [](const PeerTime* time) { return time->seconds; });
  if (order.size() < 2) return {};
  return fmt::format(" | fastest {}, {:.1f}x", order[0]->name,
                     order[1]->seconds / std::max(order[0]->seconds, 1e-12));
}

std::string line_of(const PeerPass& pass) {
  std::string text = fmt::format("{:<8}", to_string(pass.pass));
  for (const PeerTime& time : pass.times) {
    const bool is_first = &time == &pass.times.front();
    text += fmt::format("{}{} {:.4g} ms", is_first ? "" : " | ", time.name, time.seconds * 1e3);
    if (is_first) text += fmt::format(" {:.1f} GFLOP/s", gigaflops(pass, time));
    text += fmt::format(" +-{:.0f} %", 100 * time.spread);
  }
  text += fastest_text(pass) + "\n";
  for (const PeerTime& time : pass.times)
    if (time.is_wrong) text += fmt::format("        {} is wrong: {}\n", time.name, time.verdict);
  return text;
}

}  // namespace

bool PeerRun::has_wrong_result() const {
  return std::ranges::any_of(passes, [](const PeerPass& pass) {
    return std::ranges::any_of(pass.times, [](const PeerTime& time) { return time.is_wrong; });
  });
}

std::optional<report::DenseComparison> verdict_of(const PeerRun& run) {
  if (run.passes.empty()) return std::nullopt;
  report::DenseComparison c{.sparse_name = {},
                            .passes = {},
                            .is_whole_step = run.is_complete,
                            .no_dense = {},
                            .dense_name = run.dense_kernel,
                            .unit = report::CostUnit::Seconds,
                            .density = run.density,
                            .outlook = {}};
  double own_spread = 0, dense_spread = 0;
  for (const PeerPass& pass : run.passes) {
    const PeerTime &own = pass.times[0], &dense = pass.times[1];
    c.passes.push_back({pass.pass, own.seconds, dense.seconds});
    own_spread += own.spread * own.seconds;
    dense_spread += dense.spread * dense.seconds;
  }
  c.how = fmt::format("measured, +-{:.0f} %, dense +-{:.0f} %", 100 * own_spread / c.sparse_cost(),
                      100 * dense_spread / c.dense_cost());
  return c;
}

PeerRun run_peers(const Arguments& given, bool check, Progress& progress) {
  Arguments a = given;
  progress.set("reading");
  const Weights weights = make_weights(a);
  a.batch_size = batch_of(a, weights);
  const Problem problem = make_problem(a, weights);
  PeerRun run{.layer = fmt::format("{}; {}, density {:.4f}", printable(weights.source),
                                   study::layer_words(problem), problem.density),
              .computer = host::host_cpu_model(),
              .density = problem.density,
              .dense_kernel =
                  fmt::format("{}, {}", host::dense_kernel_name(), to_string(problem.data_type)),
              .passes = {},
              .missing = {},
              .is_checked = check};
  with_type(problem.data_type, [&]<class T>(T) {
    progress.set("encoding");
    PeerLayer<T> layer(a, weights, check, run);
    const EndsByItself passing;
    const std::vector<Pass> passes = passes_of(problem);
    for (const Pass pass : passes) {
      progress.set(to_string(pass), std::ssize(run.passes), std::ssize(passes));
      layer.run(pass);
      if (is_interrupted()) break;
    }
    run.is_complete = run.passes.size() == passes.size() && !is_interrupted();
  });
  progress.hide();
  return run;
}

std::string to_text(const PeerRun& run) {
  std::string text = fmt::format(
      "layer   {}\nmachine {}, {} threads; Eigen and SciPy in float, "
      "SciPy on one thread, GradW by dot products\n",
      run.layer, run.computer, run.threads);
  for (const std::string& missing : run.missing) text += "missing " + missing + "\n";
  for (const PeerPass& pass : run.passes) text += line_of(pass);
  if (!run.is_complete) text += "PARTIAL: interrupted\n";
  const char* const outcome = run.has_wrong_result() ? "FAIL"
                              : run.is_checked       ? "PASS"
                                                     : "UNCHECKED";
  text += fmt::format(
      "{}: times are measured medians, +- half the range of the middle half; flops of non-zeros\n",
      outcome);
  const auto verdict = verdict_of(run);
  return verdict ? text + verdict_line(*verdict) : text;
}

std::string to_json_lines(const PeerRun& run) {
  std::string text;
  for (const PeerPass& pass : run.passes)
    for (const PeerTime& time : pass.times)
      text += Json{{"layer", run.layer},
                   {"computer", run.computer},
                   {"threads", time.name == "SciPy" ? 1 : run.threads},
                   {"pass", to_string(pass.pass)},
                   {"library", time.name},
                   {"seconds", time.seconds},
                   {"spread", time.spread},
                   {"useful_flops", pass.useful_flops},
                   {"check", time.verdict.empty() ? Json() : Json(time.verdict)},
                   {"is_wrong", time.is_wrong}}
                  .dump(-1, ' ', false, Json::error_handler_t::replace) +
              "\n";
  return text;
}

}  // namespace tessera::tools
