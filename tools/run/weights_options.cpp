#include "tessera/tools/run/internal/weights_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <utility>

#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/layer_options.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"

namespace tessera::tools::internal {
namespace {

std::pair<std::int64_t, std::int64_t> corner(const std::string& option, const std::string& text) {
  const auto pair = parse_pair(text);
  if (!pair)
    throw CLI::ValidationError(option, "the value is " + text +
                                           "; it must be {output,input}, for example "
                                           "{384,128}");
  return *pair;
}

void read_area(const CLI::App& app, const AreaText& text, Arguments& a) {
  if (app.count("--weighted-area-weighting") > 0 && app.count("--weighted-area-begin") == 0 &&
      app.count("--weighted-area-end") == 0)
    throw CLI::ValidationError("--weighted-area-weighting",
                               "has no area; give --weighted-area-begin and --weighted-area-end");
  const auto begin = corner("--weighted-area-begin", text.begin);
  const auto end = corner("--weighted-area-end", text.end);
  if (begin == end) return;
  a.pattern.area = {{begin.first, end.first}, {begin.second, end.second}, text.weight};
}

}  // namespace

void add_pattern_options(CLI::App& app, Arguments& a, AreaText& area) {
  app.add_option_function<std::string>(
         "--pattern", [&a](const std::string& text) { a.pattern = sparse::parse_pattern(text); },
         "kind of random pattern: uniform, banded, rowwise, power-law, saw-tooth, or n:m such as "
         "2:4, which also sets the density")
      ->type_name("KIND")
      ->default_str("uniform")
      ->excludes("--matrix");
  const char* const corners =
      "first element {output,input} of an area of a uniform pattern that has another density";
  auto* begin = app.add_option("--weighted-area-begin", area.begin, corners);
  auto* end = app.add_option("--weighted-area-end", area.end,
                             "element {output,input} just past the last element of that area");
  for (auto* option : {begin, end}) option->type_name("CORNER")->excludes("--matrix");
  require_number(
      app.add_option("--weighted-area-weighting", area.weight,
                     "density of that area as a multiple of the density of the whole pattern"),
      0)
      ->excludes("--matrix")
      ->capture_default_str();
}

void add_operand_options(CLI::App& app, Arguments& a) {
  app.add_option(
         "--values", a.values,
         "FILE.npy with the values of the pattern's non-zeros, in the order in which the file "
         "of --matrix stores them; a drawn pattern is stored row by row")
      ->type_name("FILE");
  app.add_option("--input", a.input,
                 "FILE.npy with the input S as [inputs][batch]; it sets the batch size")
      ->type_name("FILE")
      ->excludes("--batch-size");
  app.add_option("--output-gradient", a.output_gradient,
                 "FILE.npy with the gradient dQ of the outputs as [outputs][batch]; it sets the "
                 "batch size")
      ->type_name("FILE")
      ->excludes("--batch-size");
}

void add_poplibs_options(CLI::App& app, Arguments& a) {
  require_whole(app.add_option("--num-column-bands", a.static_bands,
                               "bands of columns of a static plan; default: the planner chooses"),
                1, kLargestSize)
      ->needs("--static");
  require_whole(app.add_option("--n-split", a.static_parts,
                               "parts of the batch of a static plan; default: the planner chooses"),
                1, kLargestSize)
      ->needs("--static");
  auto* mask = app.add_option_function<std::string>(
      "--mask-file", [&a](const std::string& path) { a.matrix = path, a.is_block_mask = true; },
      "text file with rows, columns and a 0 or 1 for each block of the sparse operand");
  mask->type_name("FILE")->needs("--static");
  for (const char* other : {"--matrix", "--input-size", "--output-size", "--values", "--pattern"})
    mask->excludes(other);
  app.add_option("--do-dense-sparse", a.is_mask_transposed,
                 "true: that file has the operand of a dense matrix times a sparse one")
      ->type_name("BOOL")
      ->default_str("false");
  auto* out = app.add_option("--write-mask", a.mask_out,
                             "write the mask of the sparse operand to this file");
  require_writable_file(*out->type_name("FILE")->needs("--static"));
  static const std::map<std::string, std::string> devices{
      {"IpuModel", "mk1"}, {"Sim", "mk1"},  {"IpuModel2", "gc200"},
      {"Sim2", "gc200"},   {"Hw", "gc200"}, {"mk1", "mk1"},
      {"gc200", "gc200"},  {"bow", "bow"},  {"Cpu", "host"}};
  auto* device = app.add_option_function<std::string>(
      "--device-type",
      [&a](const std::string& machine) {
        a.machine = machine;
        print_message(fmt::format("note: --device-type means --machine {} here\n", machine));
      },
      "device of PopSparse's command lines: IpuModel and Sim are mk1, IpuModel2, Sim2 and Hw are "
      "gc200, Cpu is this computer");
  take_one_of(device, devices)->type_name("DEVICE")->excludes("--machine");
}

void add_bucket_options(CLI::App& app, Arguments& a) {
  auto* buckets =
      app.add_option("--buckets", a.buckets,
                     "FILE of encoded weights, written by --save-buckets, with the layer, the plan "
                     "and the machine that they were encoded for; nothing is planned or encoded")
          ->type_name("FILE");
  // Such a file has what these options describe.
  for (const std::string& option :
       split_words("--matrix --input-size --output-size --density --sparsity --sparsity-factor "
                   "--groups --batch-size --block-size --single-phase --data-type --partials-type "
                   "--matmul-options --plan-constraints --plan --plan-cache --on-no-fit "
                   "--spilling --pattern --values --weighted-area-begin --weighted-area-end "
                   "--weighted-area-weighting",
                   "--buckets"))
    buckets->excludes(option);
  require_writable_file(
      *app.add_option("--save-buckets", a.save_buckets,
                      "write the encoded weights, words and values, with their plan to FILE")
           ->type_name("FILE"));
}

void check_weights_options(const CLI::App& app, const AreaText& area, Arguments& a) {
  if (a.pattern.kind == sparse::PatternKind::NOfM) {
    if (gives_density(app))
      throw CLI::ValidationError("--pattern", "n:m sets the density; omit --density");
    a.density = double(a.pattern.n) / double(a.pattern.m);
  }
  if (a.buckets.empty()) require_weights(app, a);
  if (a.is_block_mask && gives_density(app))
    throw CLI::ValidationError("--mask-file", "has the pattern of the operand; omit its density");
  if (app.count("--do-dense-sparse") > 0 && !a.is_block_mask && a.mask_out.empty())
    throw CLI::ValidationError(
        "--do-dense-sparse", "is about the mask of --mask-file or --write-mask; give one of them");
  if (a.chooses_block && !(a.input.empty() && a.output_gradient.empty()))
    throw CLI::ValidationError("--block-size",
                               "is auto, which needs --batch-size; give the block with --input "
                               "or --output-gradient");
  if (a.chooses_block && !a.plan_file.empty())
    throw CLI::ValidationError("--block-size", "is auto, but the plan of --plan has its block");
  if (!a.output_gradient.empty() && !a.grad_a() && !a.grad_w())
    throw CLI::ValidationError("--output-gradient", "no pass reads it with --single-phase fwd");
  read_area(app, area, a);
}

}  // namespace tessera::tools::internal
