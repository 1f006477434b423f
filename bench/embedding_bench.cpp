// Measures lookups and updates of an embedding on the modelled machine beside the one-hot passes
// that emulate them: modelled cycles, and the processor time that this computer takes to run them.
// --bars exits with 1 if a ratio is above its bar.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/runtime/embedding.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

// The cycles of an operation and the seconds of processor time that it takes here.
struct Cost {
  Cycles cycles;
  double seconds = 0;
};

struct EmbeddingCosts {
  Cost slice, update, one_hot_slice, one_hot_update;
};

EmbeddingCosts measure_embedding(std::int64_t rows, std::int64_t columns, std::int64_t count,
                                 double density, int repeats) {
  const Problem problem{.size = {1, rows, columns, count},
                        .density = density,
                        .data_type = DataType::Half,
                        .grad_a = true,
                        .grad_w = true};
  const device::Machine machine = device::machine_preset("gc200");
  planner::Options options;
  options.constraints.use_dense = false;
  const planner::Plan plan = planner::plan_or_throw(problem, machine, options);
  const auto executor = sequential();
  runtime::FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  if (const auto misfit =
          layer.set_weights(sparse::random_pattern(rows, columns, {1, 1}, density, 7)))
    throw Error(ErrorCode::NoSolution, misfit->message);
  runtime::Embedding embedding(layer, problem, plan, machine, device::ExchangeMode::Share,
                               *executor);
  Random random(11);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(random.below(rows));
  Matrix<Half> one_hot(rows, count), out(count, columns), looked_up(columns, count);
  for (std::int64_t i = 0; i < count; ++i) one_hot(ids[std::size_t(i)], i) = Half(1.0f);
  const auto slices = random_matrix<Half>(count, columns, 3);
  const auto by_column = random_matrix<Half>(columns, count, 3);
  std::vector<float> gradients(static_cast<std::size_t>(layer.values()));
  EmbeddingCosts costs;
  const std::vector<double> t = medians(
      {[&] { costs.slice.cycles = embedding.embedding_slice<Half>(ids, out.view()).total(); },
       [&] {
         costs.update.cycles =
             embedding.embedding_update_add<Half>(ids, slices.view(), 0.001f).total();
       },
       [&] {
         costs.one_hot_slice.cycles = layer.grad_a<Half>(one_hot.view(), looked_up.view()).total();
       },
       [&] {
         costs.one_hot_update.cycles =
             layer.grad_w<Half>(one_hot.view(), by_column.view(), std::span(gradients)).total();
       }},
      repeats);
  costs.slice.seconds = t[0];
  costs.update.seconds = t[1];
  costs.one_hot_slice.seconds = t[2];
  costs.one_hot_update.seconds = t[3];
  return costs;
}

void print_row(const char* name, const Cost& own, const Cost& one_hot) {
  fmt::print("| {} | {} | {} | {:.3f} | {:.1f} | {:.1f} | {:.3f} |\n", name, own.cycles.value,
             one_hot.cycles.value, double(own.cycles.value) / double(one_hot.cycles.value),
             1e3 * own.seconds, 1e3 * one_hot.seconds, own.seconds / one_hot.seconds);
}

int run(int repeats, bool bars) {
  fmt::print("{}, one thread, 33,288 x 512, density 0.02, 1,024 ids, half on gc200.\n\n",
             host::host_cpu_model());
  const EmbeddingCosts c = measure_embedding(33288, 512, 1024, 0.02, repeats);
  fmt::print(
      "| operation | cycles | one-hot cycles | ratio | ms here | one-hot ms | ratio |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  print_row("slice, GradA", c.slice, c.one_hot_slice);
  print_row("update, GradW", c.update, c.one_hot_update);
  fmt::print("\n");
  Report report;
  const auto bar = [&](const char* name, double own, double one_hot) {
    report.at_most(name, own / one_hot, 0.1);
  };
  bar("cycles of a slice by one-hot", double(c.slice.cycles.value),
      double(c.one_hot_slice.cycles.value));
  bar("cycles of an update by one-hot", double(c.update.cycles.value),
      double(c.one_hot_update.cycles.value));
  bar("time of a slice by one-hot", c.slice.seconds, c.one_hot_slice.seconds);
  bar("time of an update by one-hot", c.update.seconds, c.one_hot_update.seconds);
  return bars && !report.all_met() ? 1 : 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  CLI::App app("Embeddings on the modelled machine beside one-hot passes");
  bool bars = false;
  int repeats = 5;
  app.add_flag("--bars", bars, "exit with 1 when a bar is short");
  app.add_option("--repeats", repeats, "runs of each operation")->check(CLI::Range(3, 101));
  CLI11_PARSE(app, argc, argv);
  return tessera::bench::run(repeats, bars);
}
