#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tessera/tools/commands/commands.hpp"
#include "tessera/tools/options/host_options.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/run/run.hpp"

namespace tessera::tools {
namespace {

struct MatMulArguments {
  std::shared_ptr<Arguments> run = std::make_shared<Arguments>();
  MatMulProblem product{.m = 0, .k = 0, .n = 0};  // 0: not given
  std::int64_t non_zeros = -1;                    // -1: not given
};

void add_product_options(CLI::App& app, MatMulArguments& a) {
  MatMulProblem& p = a.product;
  const std::pair<const char*, std::pair<std::int64_t*, const char*>> sizes[] = {
      {"--m", {&p.m, "rows of the result"}},
      {"--k", {&p.k, "columns of the left operand, rows of the right one"}},
      {"--n", {&p.n, "columns of the result"}},
      {"--groups", {&p.groups, "number of products, each with a pattern of its own"}}};
  for (const auto& [name, size] : sizes)
    require_whole(app.add_option(name, *size.first, size.second), 1, kLargestSize);
  app.get_option("--groups")->capture_default_str();
  auto* file = app.add_option("--matrix", a.run->matrix,
                              "file of the sparse operand as it is stored: .smtx, .mtx, .npz, "
                              ".npy, .safetensors or a 0/1 mask .txt")
                   ->type_name("FILE");
  add_density_options(app, *a.run, *file);
  auto* count = app.add_option("--non-zeros", a.non_zeros,
                               "number of non-zero elements of the sparse operand in each group");
  require_whole(count, 0, kLargestSize)->excludes(file);
  for (const char* density : {"--density", "--sparsity-factor", "--sparsity"})
    count->excludes(density);
  add_block_option(app, a.run->block);
  app.add_flag("--transpose-lhs", p.transpose_lhs, "the left operand is stored as [k][m]");
  app.add_flag("--transpose-rhs", p.transpose_rhs, "the right operand is stored as [n][k]");
  app.add_flag_callback(
      "--dense-sparse", [&p] { p.side = SparseSide::Right; },
      "the right operand is sparse and the left one is dense");
  add_type_options(app, *a.run);
}

// Throws CLI::ValidationError unless all sizes and the density are given, or a file that has them.
void require_sizes(const CLI::App& app, const MatMulArguments& a) {
  const MatMulProblem& p = a.product;
  const bool left = p.side == SparseSide::Left, has_file = !a.run->matrix.empty();
  if (has_file && p.groups > 1)
    throw CLI::ValidationError("--groups", "a file has one pattern; omit --matrix or --groups");
  const bool has_dense_size = (left ? p.n : p.m) > 0;
  const bool has_sparse_sizes = has_file || ((left ? p.m : p.n) > 0 && p.k > 0);
  if (!has_dense_size || !has_sparse_sizes)
    throw CLI::ValidationError(
        "sizes",
        fmt::format("give --m, --k and --n, or --matrix FILE and {}", left ? "--n" : "--m"));
  if (!has_file && !gives_density(app) && a.non_zeros < 0)
    throw CLI::ValidationError("--density", "give --density, --sparsity, --non-zeros or --matrix");
}

void finish(const CLI::App& app, MatMulArguments& a) {
  require_sizes(app, a);
  Arguments& run = *a.run;
  run.phase = PhaseChoice::Fwd;
  finish_common_run_options(app, run);
  if (run.phase != PhaseChoice::Fwd)
    throw CLI::ValidationError(
        "--matmul-options", "doGradAPass and doGradWPass are for layers; a product has one pass");
  if (a.non_zeros >= 0) run.density = with_non_zeros(a.product, a.non_zeros).density;
  run.product = a.product;
  if (run.explain && is_host(run))
    throw CLI::ValidationError("--explain", "this computer has no plan; omit it");
}

}  // namespace

void add_matmul_command(CLI::App& app, std::function<int()>& run) {
  CLI::App* command = app.add_subcommand(
      "matmul", "Multiplies a sparse and a dense matrix, [m][k] * [k][n], and checks the result.");
  const auto arguments = std::make_shared<MatMulArguments>();
  command->footer(std::string(kExitCodes) +
                  "\nExample: tessera matmul --m 1024 --k 512 --n 64 --sparsity 0.9 "
                  "--transpose-rhs");
  add_product_options(*command, *arguments);
  add_machine_options(*command, *arguments->run);
  add_host_options(*command, *arguments->run);
  add_planner_options(*command, *arguments->run);
  add_common_run_options(*command, *arguments->run);
  command
      ->add_flag("--explain", arguments->run->explain,
                 "explain the plan: what each term depends on, which plans came next, and the move "
                 "of a transposed operand")
      ->excludes("--json")
      ->excludes("--csv");
  command->callback([command, arguments, &run] {
    finish(*command, *arguments);
    run = [arguments] { return run_and_print(*arguments->run, "tessera matmul"); };
  });
}

}  // namespace tessera::tools
