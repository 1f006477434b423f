#include "tessera/tools/run/passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/io/array.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/report/trace.hpp"
#include "tessera/runtime/batches.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/static_layer.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/run/operands.hpp"
#include "tessera/tools/run/product_layer.hpp"
#include "tessera/tools/run/trust.hpp"

namespace tessera::tools {
namespace {

template <class Layer>  // with a plan of a layer
verify::Rounding rounding_of(const Layer&, const report::LayerReport& report, Pass pass) {
  return {report.problem.data_type, report.problem.partials_type,
          planner::partial_sums(report.plan, pass)};
}

verify::Rounding rounding_of(const runtime::StaticLayer& layer, const report::LayerReport&,
                             Pass pass) {
  return layer.rounding(pass);
}

// The layer with operands for the whole batch.
template <class T, class Layer>
class Passes {
 public:
  Passes(Layer& layer, const Weights& weights, const Arguments& a, LayerRun& run,
         Progress& progress)
      : layer_(layer),
        progress_(progress),
        run_(run),
        weights_(weights),
        arguments_(a),
        notes_(run.context.notes),
        report_(run.report),
        files_(run.files),
        is_checked_(a.stop == StopAfter::Checks),
        is_kept_(!a.output_dir.empty()),
        keeps_tiles_(run.keeps_tiles || !a.trace.empty()),
        width_(run.report.problem.size.z),
        parts_(runtime::batch_parts(a.batch_size, width_)),
        matrices_(inside(weights)),
        s_(make_s<T>(a, weights)),
        q_grad_(make_q_grad<T>(a, weights)) {
    if (is_kept_)
      keep_operands(std::as_const(s_).view(), std::as_const(q_grad_).view(), report_.problem,
                    files_);
  }

  void fwd() {
    product(Pass::Fwd, matrices_, s_,
            [this](MatrixView<const T> in, MatrixView<T> out, const layer::PassOptions& options,
                   device::Ledger& ledger) {
              return layer_.template forward<T>(in, out, options, ledger);
            });
  }

  void grad_a() {
    std::vector<sparse::CheckedCsr<float>> transposes;
    for (const auto& matrix : matrices_) transposes.push_back(sparse::transpose(matrix));
    product(Pass::GradA, transposes, q_grad_,
            [this](MatrixView<const T> in, MatrixView<T> out, const layer::PassOptions& options,
                   device::Ledger& ledger) {
              return layer_.template grad_a<T>(in, out, options, ledger);
            });
  }

  // Each run returns the gradients of its part of the batch.
  void grad_w() {
    report::PassReport pass{.pass = Pass::GradW};
    for (const Range part : parts_) {
      Matrix<T> part_q_grad, part_s;
      const MatrixView<const T> q_grad = columns(q_grad_, part, part_q_grad),
                                s = columns(s_, part, part_s);
      std::vector<float> values(std::size_t(stored_values(weights_)));
      trusted(Pass::GradW, values, [&](const layer::PassOptions& options) {
        is_cut_ = !layer_.template grad_w<T>(q_grad, s, std::span(values), options, pass.ledger);
      });
      if (is_cut_) return;
      const std::vector<sparse::Csr<float>> gradients =
          gradients_inside(std::move(values), weights_);
      // The gradients of several parts are not added up here, so none is stored.
      if (is_kept_ && parts_.size() == 1) keep_gradients(gradients, files_);
      if (!is_checked_ || is_over()) continue;
      if (!pass.verdict) pass.verdict.emplace();
      verify::add_part(verify_gradients<T>(matrices_, gradients, q_grad, s, rounding(Pass::GradW)),
                       *pass.verdict);
    }
    pass.self_check = std::exchange(self_check_, {});
    keep_tiles(pass);
    report_.passes.push_back(std::move(pass));
  }

  bool is_over() const {
    return is_interrupted() || std::chrono::steady_clock::now() >= run_.deadline;
  }
  bool is_cut() const { return is_cut_; }

 private:
  // Returns true if one run takes the whole batch, whose columns are then not copied.
  bool is_one_run() const { return parts_.size() == 1 && parts_[0].size() == width_; }

  // Returns the columns of a run, which are copied to `copy` unless they are the whole batch.
  MatrixView<const T> columns(const Matrix<T>& whole, Range part, Matrix<T>& copy) const {
    if (is_one_run()) return whole.view();
    copy = runtime::batch_columns(whole.view(), part, width_);
    return std::as_const(copy).view();
  }

  // Adds the figures of the tiles for the run whose ledger the pass has.
  void keep_tiles(report::PassReport& pass) {
    if (!keeps_tiles_) return;
    const device::MemoryUse memory = layer_.memory(pass.pass);
    pass.tiles = report::tile_report(pass.ledger, tiles_, memory, layer_.program(pass.pass));
    if (arguments_.trace.empty()) return;
    run_.traces.push_back(report::to_trace(
        {to_string(pass.pass), report_.machine, pass.ledger, tiles_, memory},
        {.first_tile = arguments_.trace_first_tile, .tiles = arguments_.trace_tiles}));
  }

  // Calls run(options), which writes `results`, with the options that the arguments ask for. If a
  // fault is requested, a run without it comes first, for comparison.
  template <class Results, class Run>
  void trusted(Pass pass, const Results& results, Run&& run) {
    Trust trust(arguments_, pass);
    Results clean;
    if (trust.has_fault()) {
      run({});
      clean = results;
    }
    runtime::TilePass options = trust.options();
    options.pass.stop = stop_.get_token();
    options.pass.progress = [&](const runtime::Progress& at) {
      progress_.set(fmt::format("{}, {}", to_string(pass), at.step),
                    std::int64_t(report_.passes.size()),
                    std::int64_t(passes_wanted(report_.problem)));
      if (is_over()) stop_.request_stop();
    };
    if (keeps_tiles_) options.tiles.tiles = &tiles_;
    run(options);
    const bool is_changed = trust.has_fault() && results != clean;
    for (std::string& note : trust.notes(is_changed)) notes_.push_back(std::move(note));
    if (!trust.checksums()) return;
    if (!self_check_) self_check_.emplace();
    verify::add_part(*trust.checksums(), *self_check_);
  }

  // Computes matrix * in for the whole batch, for the matrix of every group; `run` runs the layer
  // on one part of the batch.
  template <class Run>
  void product(Pass pass, std::span<const sparse::CheckedCsr<float>> matrices, const Matrix<T>& in,
               Run&& run) {
    Matrix<T> out(std::ssize(matrices) * matrices[0]->rows, in.cols());
    device::Ledger ledger;
    for (const Range part : parts_) {
      Matrix<T> part_in, part_out;
      if (!is_one_run()) part_out = Matrix<T>(out.rows(), width_);
      Matrix<T>& result = is_one_run() ? out : part_out;
      const MatrixView<const T> operand = columns(in, part, part_in);
      trusted(pass, result.elements(), [&](const layer::PassOptions& options) {
        is_cut_ = !run(operand, result.view(), options, ledger);
      });
      if (is_cut_) return;
      if (!is_one_run()) runtime::put_columns(part_out, part, out.view());
    }
    if (is_kept_)
      files_.emplace_back(pass == Pass::Fwd ? "q.npy" : "s_gradient.npy",
                          result_file(pass, std::as_const(out).view(), weights_.scale_exponent));
    report_.passes.push_back({pass, std::move(ledger), {}, std::exchange(self_check_, {})});
    keep_tiles(report_.passes.back());
    if (is_checked_ && !is_over())
      report_.passes.back().verdict =
          verify_groups<T>(matrices, in.view(), std::as_const(out).view(), rounding(pass));
  }

  verify::Rounding rounding(Pass pass) const { return rounding_of(layer_, report_, pass); }

  Layer& layer_;
  Progress& progress_;
  LayerRun& run_;
  std::stop_source stop_;
  bool is_cut_ = false;  // the last run was stopped
  const Weights& weights_;
  const Arguments& arguments_;
  std::vector<std::string>& notes_;
  report::LayerReport& report_;
  std::vector<std::pair<std::string, std::string>>& files_;
  device::TileLedger tiles_;                     // of the last run, if requested
  std::optional<verify::Checksums> self_check_;  // of the parts of the pass that have run
  bool is_checked_, is_kept_, keeps_tiles_;
  std::int64_t width_;  // columns of one run
  std::vector<Range> parts_;
  std::vector<sparse::CheckedCsr<float>> matrices_;  // the weights inside the layer, by group
  Matrix<T> s_, q_grad_;
};

template <class T, class Layer>
void run_typed(Passes<T, Layer> passes, LayerRun& run, Progress& progress) {
  const EndsByItself passing;
  const Problem& problem = run.report.problem;
  const std::size_t all = passes_wanted(problem);
  const auto pass = [&](bool is_wanted, const char* name, auto go) {
    if (!is_wanted || run.context.is_partial) return;
    progress.set(name, std::int64_t(run.report.passes.size()), std::int64_t(all));
    if (!passes.is_over()) go();
    run.context.is_partial =
        passes.is_cut() || (passes.is_over() && run.report.passes.size() < all);
  };
  pass(true, "Fwd", [&] { passes.fwd(); });
  if constexpr (!std::is_same_v<Layer, ProductLayer>) {
    pass(problem.grad_a, "GradA", [&] { passes.grad_a(); });
    pass(problem.grad_w, "GradW", [&] { passes.grad_w(); });
  }
  if (run.context.is_partial)
    run.context.notes.push_back(fmt::format("{}: {} of {} passes ran",
                                            is_interrupted() ? "interrupted" : "out of time",
                                            run.report.passes.size(), all));
}

}  // namespace

std::size_t passes_wanted(const Problem& problem) {
  return std::size_t{1} + problem.grad_a + problem.grad_w;
}

template <class Layer>
void run_passes(Layer& layer, const Weights& weights, const Arguments& arguments, LayerRun& run,
                Progress& progress) {
  with_type(run.report.problem.data_type, [&](auto zero) {
    run_typed(Passes<decltype(zero), Layer>(layer, weights, arguments, run, progress), run,
              progress);
  });
}

template void run_passes(runtime::FullyConnected&, const Weights&, const Arguments&, LayerRun&,
                         Progress&);
template void run_passes(ProductLayer&, const Weights&, const Arguments&, LayerRun&, Progress&);
template void run_passes(runtime::StaticLayer&, const Weights&, const Arguments&, LayerRun&,
                         Progress&);

}  // namespace tessera::tools
