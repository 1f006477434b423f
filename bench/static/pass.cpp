#include "tessera/bench/static/pass.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/model/plain_product.hpp"
#include "tessera/bench/peak_memory.hpp"
#include "tessera/bench/static/cells.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/runtime/static_layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t kPassSide = 4096, kPassBatch = 256;

sparse::Csr<float> pattern_of(std::int64_t block) {
  return sparse::random_pattern(kPassSide, kPassSide, {block, block}, 0.1, 7);
}

// One layer of floats with its operands on one thread.
struct Simulated {
  Simulated(const sparse::Csr<float>& pattern, device::ExchangeMode mode)
      : weights(pattern),
        problem(float_problem(pattern)),
        machine(device::machine_preset("gc200")),
        plan(planner::plan_static(problem, view_of(pattern), machine).plan.value()),
        layer(problem, sparse::checked(pattern), plan, machine, mode, *executor),
        s(random_matrix<float>(kPassSide, kPassBatch, 1)),
        q(kPassSide, kPassBatch) {}

  static Problem float_problem(const sparse::Csr<float>& pattern) {
    Problem problem = half_problem(pattern, kPassBatch);
    problem.data_type = DataType::Float;
    return problem;
  }

  void forward() { layer.forward<float>(std::as_const(s).view(), q.view()); }

  void check() const {
    const auto result =
        verify::verify_product<float>(weights, s.view(), q.view(), layer.rounding(Pass::Fwd));
    if (!result.ok()) throw std::runtime_error("wrong result: " + to_string(result));
  }

  // The memory that a pass needs in any case: R twice, as the caller's and on the tiles, S, Q, the
  // words, and the partial sums of all tiles.
  double needed_bytes() const {
    const auto blocks = double(weights.blocks()), values = double(weights.values.size());
    double sums = 0, words = 0;
    for (const planner::StaticPart& part : plan.parts)
      for (const planner::StaticTile& tile : plan.layouts[std::size_t(part.layout)].tiles) {
        sums += 4 * double(tile.rows * weights.block.rows * part.columns());
        words += 2 * double(2 * tile.rows + tile.blocks);
      }
    return 4 * (2 * values + blocks) + 8 * double(weights.row_begin.size()) + words + sums +
           4 * double(kPassSide * kPassBatch) * 2;
  }

  std::unique_ptr<Executor> executor = sequential();
  const sparse::Csr<float>& weights;
  Problem problem;
  device::Machine machine;
  planner::StaticPlan plan;
  runtime::StaticLayer layer;
  Matrix<float> s, q;
};

void times(Report& report, std::int64_t block) {
  const auto weights = pattern_of(block);
  Simulated share(weights, device::ExchangeMode::Share);
  Simulated isolate(weights, device::ExchangeMode::Isolate);
  Matrix<float> q(kPassSide, kPassBatch);
  const auto s = std::as_const(share.s).view();
  constexpr int kRepeats = 9;
  const auto found = medians({[&] { plain_product(weights, s, q.view()); },
                              [&] { share.forward(); }, [&] { isolate.forward(); }},
                             kRepeats);
  share.check();
  isolate.check();
  const std::string name = "block " + std::to_string(block) + ": ";
  report.at_most(name + "simulated Fwd, shared memory, by a plain loop", found[1] / found[0], 1.5);
  report.at_most(name + "simulated Fwd, isolated memory, by a plain loop", found[2] / found[0], 4);
  report.tell("  simulated, shared memory, ms", 1e3 * found[1]);
}

void memory(Report& report, std::int64_t block) {
  const auto weights = pattern_of(block);
  double needed = 0;
  const double peak = peak_memory([&] {
    Simulated layer(weights, device::ExchangeMode::Share);
    layer.forward();
    needed = layer.needed_bytes();
  });
  report.at_most("block " + std::to_string(block) + ": peak memory by operands, words and sums",
                 peak / needed, 1.25);
  report.tell("  MiB at the peak", peak / (1 << 20));
}

}  // namespace

void static_pass_bars(Report& report) {
  for (const std::int64_t block : {1, 16}) memory(report, block);
  for (const std::int64_t block : {1, 16}) times(report, block);
}

}  // namespace tessera::bench
