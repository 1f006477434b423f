// Measures products of a sparse and a dense matrix (host::MatMul) beside the Fwd pass of a layer
// with the same numbers, on one thread, and prints a table in Markdown. --bars exits with 1 if a
// product whose operands are in the order of the layer is slower.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/matmul.hpp"
#include "tessera/sparse/matmul.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

// Seconds of a product and of the pass that it is.
struct MatMulTimes {
  double product = 0, pass = 0;
};

MatMulTimes measure_matmul(const MatMulProblem& problem, int repeats) {
  const auto executor = sequential();
  const host::HostCpu cpu = host::read_host_cpu();
  const MatrixShape stored = sparse_shape(problem), dense = dense_shape(problem),
                    out = result_shape(problem);
  const auto operand =
      sparse::random_pattern(stored.rows, stored.cols, problem.block, problem.density, 1);
  const Matrix<float> given = random_matrix<float>(dense.rows, dense.cols, 2);
  Matrix<float> result(out.rows, out.cols);
  host::MatMul product(problem, cpu, *executor);
  product.set_sparse(operand);
  const Problem of_layer = layer_of(problem);
  host::HostLayer layer(of_layer, cpu, *executor);
  layer.set_weights(sparse::checked(sparse::matmul_weights(problem, {&operand, 1})));
  const Matrix<float> s = random_matrix<float>(of_layer.size.y, of_layer.size.z, 2);
  Matrix<float> q(of_layer.size.x, of_layer.size.z);
  const std::vector<double> t =
      medians({[&] { product.multiply<float>(given.view(), result.view()); },
               [&] { layer.forward<float>(s.view(), q.view()); }},
              repeats);
  return {t[0], t[1]};
}

int run(int repeats, bool bars) {
  fmt::print("{}, one thread, float; medians of processor time.\n\n", host::host_cpu_model());
  fmt::print(
      "| m | k | n | block | density | sparse | transposed | ms | by the pass |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  double worst = 0, worst_moved = 0;
  for (const auto& [m, k, n, block, density] :
       {std::tuple{std::int64_t{1024}, std::int64_t{1024}, std::int64_t{256}, BlockShape{1, 1},
                   0.05},
        {4096, 4096, 64, {1, 1}, 0.01},
        {4096, 4096, 64, {16, 16}, 0.05},
        {1021, 509, 127, {1, 1}, 0.1}})
    for (const SparseSide side : {SparseSide::Left, SparseSide::Right})
      for (const bool transposed : {false, true}) {
        MatMulProblem problem{.m = side == SparseSide::Left ? m : n,
                              .k = k,
                              .n = side == SparseSide::Left ? n : m,
                              .side = side,
                              .block = block,
                              .density = density,
                              .data_type = DataType::Float,
                              .transpose_lhs = transposed && side == SparseSide::Right,
                              .transpose_rhs = transposed && side == SparseSide::Left};
        const MatMulTimes t = measure_matmul(problem, repeats);
        const bool by_column = is_dense_by_column(problem) || is_result_by_column(problem);
        (by_column ? worst_moved : worst) =
            std::max(by_column ? worst_moved : worst, t.product / t.pass);
        fmt::print("| {} | {} | {} | {} | {} | {} | {} | {:.3f} | {:.2f} |\n", problem.m, problem.k,
                   problem.n, block.rows, density, to_string(side), transposed ? "dense" : "no",
                   1e3 * t.product, t.product / t.pass);
        std::fflush(stdout);
      }
  fmt::print("\n");
  Report report;
  report.at_most("slowest product by the pass, operands in its order", worst, 1.03);
  report.tell("slowest product by the pass, operands by column", worst_moved);
  return bars && !report.all_met() ? 1 : 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  CLI::App app("Products of a sparse and a dense matrix beside the pass of a layer");
  bool bars = false;
  int repeats = 21;
  app.add_flag("--bars", bars, "exit with 1 when a bar is short");
  app.add_option("--repeats", repeats, "runs of each product")->check(CLI::Range(3, 1001));
  CLI11_PARSE(app, argc, argv);
  return tessera::bench::run(repeats, bars);
}
