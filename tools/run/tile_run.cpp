#include "tessera/tools/run/tile_run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/report/trace.hpp"
#include "tessera/runtime/fit.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/matmul.hpp"
#include "tessera/runtime/static_layer.hpp"
#include "tessera/runtime/tile_options.hpp"
#include "tessera/tools/options/interrupt.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/run/bucket_file.hpp"
#include "tessera/tools/run/product_layer.hpp"
#include "tessera/tools/run/run_passes.hpp"

namespace tessera::tools {
namespace {

// A layer on a modelled machine: runtime::FullyConnected or runtime::StaticLayer. If the batch is
// run in parts, the ledger of a pass is that of one run, because cycles depend on the pattern alone
// and all runs cost the same.
template <class Layer>
class TileTarget : public PassTarget {
 public:
  TileTarget(Layer& layer, const Weights& weights, const Arguments& a, LayerRun& run)
      : PassTarget(layer, weights),
        layer_(layer),
        arguments_(a),
        run_(run),
        keeps_tiles_(run.keeps_tiles || !a.trace.empty()) {}

  bool run(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
           const FaultOfRun& fault) final {
    runtime::TilePass with(options);
    if (keeps_tiles_) with.tiles.tiles = &tiles_;
    if (fault.request != nullptr) with.tiles.fault = fault.request->fault;
    with.tiles.struck = fault.struck;
    return compute(pass, operands, with, ledger_);
  }

  void take(PassOutcome&& outcome) final {
    for (std::string& note : outcome.notes) run_.context.notes.push_back(std::move(note));
    if (!outcome.is_finished) return;
    run_.report.passes.push_back({outcome.pass, std::move(ledger_), std::move(outcome.verdict),
                                  std::move(outcome.self_check)});
    if (keeps_tiles_) keep_tiles(run_.report.passes.back());
  }

  bool is_over() const final {
    return is_interrupted() || std::chrono::steady_clock::now() >= run_.deadline;
  }

 private:
  virtual bool compute(Pass pass, const layer::Operands& operands,
                       const layer::PassOptions& options, device::Ledger& ledger) {
    return run_pass(layer_, pass, operands, options, ledger);
  }

  // Adds the figures of the tiles for the run whose ledger the pass has.
  void keep_tiles(report::PassReport& pass) {
    const device::MemoryUse memory = layer_.memory(pass.pass);
    pass.tiles = report::tile_report(pass.ledger, tiles_, memory, layer_.program(pass.pass));
    if (arguments_.trace.empty()) return;
    run_.traces.push_back(report::to_trace(
        {to_string(pass.pass), run_.report.machine, pass.ledger, tiles_, memory},
        {.first_tile = arguments_.trace_first_tile, .tiles = arguments_.trace_tiles}));
  }

  Layer& layer_;
  const Arguments& arguments_;
  LayerRun& run_;
  bool keeps_tiles_;
  device::Ledger ledger_;     // of the last run
  device::TileLedger tiles_;  // the same, if requested
};

// A product, whose operands are those of its layer: each run stores the dense one as the product's
// caller would.
class ProductTarget final : public TileTarget<runtime::FullyConnected> {
 public:
  ProductTarget(runtime::MatMul& product, const Weights& weights, const Arguments& a, LayerRun& run)
      : TileTarget(product.layer(), weights, a, run), product_(product) {}

 private:
  bool compute(Pass, const layer::Operands& operands, const layer::PassOptions& options,
               device::Ledger& ledger) override {
    return with_type(operands.in.type, [&]<class T>(T) {
      const MatMulProblem& problem = product_.plan().problem;
      const Matrix<T> dense = as_stored<T>(problem, operands.in.as<T>());
      Matrix<T> result = stored_result<T>(problem);
      const bool finished = product_.multiply<T>(dense.view(), result.view(), options, ledger);
      take_result<T>(problem, std::as_const(result).view(), operands.out.as<T>());
      return finished;
    });
  }

  runtime::MatMul& product_;
};

void run_passes_of(PassTarget&& target, const Weights& weights, const Arguments& a, LayerRun& run,
                   Progress& progress) {
  if (a.stop < StopAfter::Passes) return;
  const std::int64_t ran = run_passes(target, run.report.problem, weights, a, run.files, progress);
  const std::int64_t all = std::ssize(passes_of(run.report.problem));
  if (!run.traces.empty()) run.outputs.emplace_back(a.trace, report::join_traces(run.traces));
  run.context.is_partial = ran < all;
  if (run.context.is_partial)
    run.context.notes.push_back(fmt::format(
        "{}: {} of {} passes ran", is_interrupted() ? "interrupted" : "out of time", ran, all));
}

[[noreturn]] void throw_misfit(const partitioner::Misfit& misfit, const report::LayerReport& report,
                               const planner::Options& options, const Weights& weights) {
  std::optional<double> enough;  // the search encodes a single matrix
  if (weights.groups() == 1)
    enough = runtime::oversize_that_fits(report.problem, report.machine, options, weights.matrix);
  const std::string remedy =
      enough ? fmt::format(
                   "--matmul-options '{{\"metaInfoBucketOversizeProportion\": {}}}' "
                   "would do; it is {} now",
                   *enough, options.meta_info_bucket_oversize_proportion)
      : weights.groups() > 1
          ? std::string("a larger metaInfoBucketOversizeProportion may do")
          : std::string("no metaInfoBucketOversizeProportion up to 1000 would do");
  throw Error(ErrorCode::NoSolution, fmt::format("{}; {}", misfit.message, remedy));
}

partitioner::EncodeOptions encode_options(const Arguments& a, const planner::Options& options,
                                          const runtime::FullyConnected& layer,
                                          bool layer_is_dense) {
  partitioner::EncodeOptions encode{.force_spills = options.partitioner_force_bucket_spills};
  if (a.spilling && layer_is_dense)
    throw Error(
        ErrorCode::InvalidArgument,
        "--spilling has no effect here, because the plan of this layer stores R with its zeros "
        "and has no buckets; omit it, or set planConstraints.useDense false");
  if (!a.spilling) return encode;
  if (encode.force_spills)
    throw Error(ErrorCode::InvalidArgument,
                "--spilling has no effect if partitioner.forceBucketSpills moves every block; omit "
                "one of them");
  if (*a.spilling == SpillChoice::Greedy) encode.spilling = partitioner::Spilling::Greedy;
  if (*a.spilling == SpillChoice::EvenLoad) encode.even_load = layer.load_cost();
  return encode;
}

void add_tiles(const runtime::FullyConnected& layer, std::int64_t groups, const planner::Plan& plan,
               PageExtras& page) {
  const auto of_groups = [&](Pass pass) {
    std::vector<const partitioner::Buckets*> buckets;
    for (std::int64_t g = 0; g < groups; ++g) buckets.push_back(&layer.buckets_of(pass, g));
    return buckets;
  };
  page.tiles = report::tiles_json(of_groups(Pass::Fwd));
  if (plan.runs_transposed(Pass::GradA))
    page.transposed_tiles = report::tiles_json(of_groups(Pass::GradA), /*is_transposed=*/true);
}

device::ExchangeMode mode_of(const Arguments& a) {
  return a.isolate || a.fault ? device::ExchangeMode::Isolate : device::ExchangeMode::Share;
}

void build_and_run_static(const Arguments& a, const Weights& weights, LayerRun& run,
                          Progress& progress) {
  report::LayerReport& report = run.report;
  report.spill.blocks = weights.matrix->blocks();
  if (a.stop == StopAfter::Plan) return;
  progress.set("building the programs");
  const auto executor = make_executor(a.threads);
  runtime::StaticLayer layer(report.problem, weights.matrix, *report.static_plan, report.machine,
                             mode_of(a), *executor);
  report.high_water = layer.high_water();
  run_passes_of(TileTarget(layer, weights, a, run), weights, a, run, progress);
}

// Returns a line with the number of serial parts in which the dense weight gradient runs beside the
// buckets of the layer. Only the outputs are cut.
std::string serial_splits(runtime::FullyConnected& layer) {
  return fmt::format("dense GradW in {0} serial parts: groups 1, inputs 1, outputs {0}\n",
                     layer.dense_grad_w_splits());
}

// Encodes the weights, or takes those of a file, and adds the figures of the encoded layer to the
// report.
void encode(const Arguments& a, const Weights& weights, runtime::FullyConnected& layer,
            LayerRun& run) {
  report::LayerReport& report = run.report;
  const planner::Options& options = run.context.options;
  const bool is_dense = report.plan.dense.has_value();
  if (!a.save_buckets.empty() && is_dense)
    throw Error(ErrorCode::InvalidArgument,
                "--save-buckets: this plan keeps R dense, without buckets; keep R sparse with "
                "--plan-constraints '{\"useDense\": false}'");
  if (weights.encoded) {
    layer.restore_weights(*weights.encoded);
  } else if (const auto misfit =
                 layer.set_weights(std::span<const sparse::CheckedCsr<float>>(weights.matrices()),
                                   encode_options(a, options, layer, is_dense))) {
    throw_misfit(*misfit, report, options, weights);
  }
  if (!a.save_buckets.empty())
    run.outputs.emplace_back(
        a.save_buckets,
        bucket_file(layer, weights, {report.problem, report.machine, options, report.plan}));
  report.spill = layer.spill();
  report.travel = layer.travel();
  report.pattern_bytes = layer.pattern_bytes();
  if (wants_page(a) && !is_dense) add_tiles(layer, weights.groups(), report.plan, run.page);
  if (a.report_serial_splits) run.extras += "\n" + serial_splits(layer);
}

// Adds the transposition of the dense operand to the costs of both sides of the verdict: a dense
// product needs it in the same order.
void charge_move(const planner::TransposePlan& move, LayerRun& run) {
  report::LayerReport& report = run.report;
  planner::add_transpose(move, Pass::Fwd, report.plan.cost);
  if (report.dense.plan) planner::add_transpose(move, Pass::Fwd, report.dense.plan->cost);
  if (report.sparse.plan) planner::add_transpose(move, Pass::Fwd, report.sparse.plan->cost);
  run.context.notes.push_back(fmt::format(
      "transposing the dense operand takes {} cycles, sparse and dense", move.cycles().value));
}

void build_and_run_product(const Arguments& a, const Weights& weights, LayerRun& run,
                           Progress& progress) {
  report::LayerReport& report = run.report;
  const MatMulProblem problem = product_of(*a.product, report.problem);
  run.context.notes.insert(run.context.notes.begin(), to_string(problem));
  planner::MatMulPlan plan = planner::matmul_plan(problem, report.plan, report.machine);
  const auto executor = make_executor(a.threads);
  runtime::MatMul product(plan, report.machine, mode_of(a), *executor);
  encode(a, weights, product.layer(), run);
  if (plan.move) charge_move(*plan.move, run);
  if (a.stop != StopAfter::Plan) report.high_water = product.high_water();
  run_passes_of(ProductTarget(product, weights, a, run), weights, a, run, progress);
}

}  // namespace

void build_and_run(const Arguments& a, const Weights& weights, LayerRun& run, Progress& progress) {
  if (a.is_static) return build_and_run_static(a, weights, run, progress);
  progress.set("encoding");
  if (a.product) return build_and_run_product(a, weights, run, progress);
  report::LayerReport& report = run.report;
  const auto executor = make_executor(a.threads);
  runtime::FullyConnected layer(report.problem, report.plan, report.machine, mode_of(a), *executor);
  encode(a, weights, layer, run);
  if (a.stop != StopAfter::Plan) report.high_water = layer.high_water();
  run_passes_of(TileTarget(layer, weights, a, run), weights, a, run, progress);
}

}  // namespace tessera::tools
