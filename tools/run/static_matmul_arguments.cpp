#include "tessera/tools/run/static_matmul_arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <tuple>

#include "tessera/base/error.hpp"
#include "tessera/io/read.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/numbers.hpp"
#include "tessera/tools/options/paths.hpp"

namespace tessera::tools {
namespace {

// The places of a weighted area, until all options are read.
struct Area {
  std::string begin = "{0,0}", end = "{0,0}";
  double weight = 1;
};

void add_sizes(CLI::App& app, Arguments& a) {
  require_whole(app.add_option("--m", a.output_size, "rows of the sparse operand"), 1,
                kLargestSize);
  require_whole(app.add_option("--k", a.input_size, "columns of the sparse operand"), 1,
                kLargestSize);
  require_whole(app.add_option("--n", a.batch_size, "columns of the dense operand"), 1,
                kLargestSize)
      ->required();
  a.density = 0.1;
  require_number(app.add_option("--sparsity-factor", a.density, "share of NON-zeros"), 0, 1)
      ->capture_default_str();
  app.add_option_function<std::int64_t>(
         "--block-length", [&a](std::int64_t side) { a.block = {side, side}; },
         "side of the square blocks: 1, 4, 8 or 16")
      ->check(CLI::IsMember({1, 4, 8, 16}))
      ->default_str("1");
  static const std::map<std::string, DataType> types{{"float", DataType::Float},
                                                     {"half", DataType::Half}};
  take_one_of(app.add_option("--data-type", a.data_type, "type of all operands"), types)
      ->type_name("TYPE")
      ->default_str("half");
}

void add_machine(CLI::App& app, Arguments& a) {
  static const std::map<std::string, std::string> devices{{"IpuModel", "mk1"},
                                                          {"IpuModel2", "gc200"},
                                                          {"mk1", "mk1"},
                                                          {"gc200", "gc200"},
                                                          {"bow", "bow"}};
  take_one_of(app.add_option("--device-type", a.machine, "machine to model: IpuModel is mk1"),
              devices)
      ->type_name("DEVICE")
      ->default_str("IpuModel2");
  require_whole(app.add_option("--tiles-per-ipu", a.tiles, "number of tiles; default: all"), 0,
                kLargestSize);
  require_whole(app.add_option("--num-column-bands", a.static_bands,
                               "number of bands of columns; default: the planner chooses"),
                1, kLargestSize);
  require_whole(app.add_option("--n-split", a.static_parts,
                               "number of parts of the batch; default: the planner chooses"),
                1, kLargestSize);
  app.add_option_function<double>(
         "--available-memory-proportion",
         [&a](double share) {
           a.matmul_options = fmt::format("{{\"availableMemoryProportion\": {}}}", share);
         },
         "share of a tile's memory for temporary data")
      ->check(CLI::Range(0.0, 1.0))
      ->default_str("0.6");
  a.matmul_options = "{\"availableMemoryProportion\": 0.6}";
}

void add_run(CLI::App& app, StaticMatMul& r) {
  Arguments& a = r.layer;
  app.add_option("--do-dense-sparse", r.dense_sparse,
                 "true: multiply a dense matrix by the sparse one")
      ->type_name("BOOL")
      ->default_str("false");
  app.add_option("--sparsity-matrix-file", r.mask,
                 "text file with rows, columns and a 0 or 1 for each block of the sparse operand")
      ->type_name("FILE");
  require_writable_file(
      *app.add_option("--output-sparsity-matrix-file", r.mask_out, "file to write the mask to")
           ->type_name("FILE"));
  app.add_flag_callback(
      "--compile-only", [&a] { a.stop = StopAfter::Build; }, "stop after building the program");
  app.add_flag_callback(
      "--ignore-data", [&a] { a.stop = StopAfter::Passes; }, "run without checking the result");
  app.add_flag("--profile", a.profile, "print the cycles of every step");
  require_writable_folder(
      *app.add_option("--profile-dir", a.output_dir, "folder to write operands and reports to")
           ->type_name("DIR"));
  app.add_flag_callback(
      "--variable-seed",
      [&a] { a.seed = std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count()); },
      "take the seed from the clock");
  app.add_flag("--verbose", a.report_plan, "print the complete plan");
  app.add_flag("--json", a.json, "print the report as JSON");
}

Range side(std::int64_t begin, std::int64_t end) { return {begin, end}; }

void read_area(const Area& area, Arguments& a) {
  const auto begin = parse_pair(area.begin), end = parse_pair(area.end);
  if (!begin || !end)
    throw CLI::ValidationError("--weighted-area-begin", "a corner must be {row,column}");
  if (*begin == *end) return;
  a.pattern.area = {side(begin->first, end->first), side(begin->second, end->second), area.weight};
}

void add_area(CLI::App& app, Area& area) {
  app.add_option("--weighted-area-begin", area.begin, "first element {m,k} of an area");
  app.add_option("--weighted-area-end", area.end, "element {m,k} just past that area");
  require_number(app.add_option("--weighted-area-weighting", area.weight,
                                "density of the area as a multiple of the whole"),
                 0)
      ->capture_default_str();
}

void check_together(StaticMatMul& r) {
  Arguments& a = r.layer;
  if (a.json && (a.profile || a.report_plan))
    throw CLI::ValidationError(a.profile ? "--profile" : "--verbose",
                               "adds to the text, which --json replaces; omit one of them");
  a.is_static = true;
  a.phase = PhaseChoice::Fwd;
  if (r.mask.empty() && (a.output_size == 0 || a.input_size == 0))
    throw CLI::ValidationError("--m", "give --m and --k, or --sparsity-matrix-file");
  for (const auto& [name, size] : {std::pair{"--m", a.output_size}, {"--k", a.input_size}})
    if (size % a.block.rows != 0)
      throw CLI::ValidationError(
          name,
          fmt::format("is {}; it must be a multiple of --block-length {}", size, a.block.rows));
}

// Returns a matrix whose places are blocks.
sparse::Csr<float> in_blocks(const sparse::Csr<double>& mask, BlockShape block) {
  sparse::Csr<float> matrix;
  matrix.rows = mask.rows * block.rows;
  matrix.cols = mask.cols * block.cols;
  matrix.block = block;
  matrix.row_begin = mask.row_begin;
  matrix.col = mask.col;
  return matrix;
}

}  // namespace

void add_static_matmul_options(CLI::App& app, StaticMatMul& request) {
  const auto area = std::make_shared<Area>();
  add_sizes(app, request.layer);
  add_machine(app, request.layer);
  add_area(app, *area);
  add_run(app, request);
  app.callback([area, &request] {
    read_area(*area, request.layer);
    check_together(request);
  });
}

Weights read_mask_weights(StaticMatMul& request) {
  Arguments& a = request.layer;
  sparse::Csr<double> mask = io::read_mask(load_text(request.mask), request.mask).matrix;
  mask.values.assign(std::size_t(mask.blocks()), 1.0);
  if (request.dense_sparse) mask = sparse::transpose(mask);
  sparse::Csr<float> matrix = in_blocks(mask, a.block);
  sparse::fill_signs(matrix, a.seed);
  for (const auto& [size, own, name] : {std::tuple{&a.output_size, matrix.rows, "--m"},
                                        std::tuple{&a.input_size, matrix.cols, "--k"}}) {
    if (*size != 0 && *size != own)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{} is {}, but {} has {}; omit it", name, *size, request.mask, own));
    *size = own;
  }
  const std::int64_t rows = matrix.rows, cols = matrix.cols;
  return {sparse::checked(std::move(matrix)), rows, cols,
          request.mask + " (a mask; values are +1 or -1)"};
}

std::string mask_text(const StaticMatMul& request, const Weights& weights) {
  const sparse::Csr<float> matrix =
      request.dense_sparse ? *sparse::transpose(weights.matrix) : *weights.matrix;
  std::string text = fmt::format("{} {}\n", matrix.block_rows(), matrix.block_cols());
  for (std::size_t row = 0; row < std::size_t(matrix.block_rows()); ++row) {
    std::string line(std::size_t(2 * matrix.block_cols()), ' ');
    for (std::size_t column = 0; column < line.size(); column += 2) line[column] = '0';
    for (auto i = matrix.row_begin[row]; i < matrix.row_begin[row + 1]; ++i)
      line[std::size_t(2 * matrix.col[std::size_t(i)])] = '1';
    line.back() = '\n';
    text += line;
  }
  return text;
}

}  // namespace tessera::tools
