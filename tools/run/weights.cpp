#include "tessera/tools/run/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/read.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/fit_range.hpp"
#include "tessera/sparse/pattern.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/study/static_layer.hpp"
#include "tessera/tools/options/inputs.hpp"
#include "tessera/tools/options/models.hpp"

namespace tessera::tools {
namespace {

// Reads the file --values, which must have `places` numbers.
std::vector<double> read_values(const Arguments& a, std::size_t places) {
  io::Array file = io::read_npy(read_file(a.values), a.values);
  if (file.values.size() != places)
    throw Error(ErrorCode::BadInput, fmt::format("{}: the file has {} values; the pattern needs {}",
                                                 a.values, file.values.size(), places));
  return std::move(file.values);
}

// Gives the pattern of a file the values of --values, which are in the order of that file.
void take_values(const Arguments& a, io::ReadMatrix& file) {
  if (file.has_values)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("--values: {} has values of its own; give it a pattern (.smtx, .txt, or "
                    ".mtx of the field \"pattern\"), or omit the option",
                    a.matrix));
  const std::vector<std::int64_t>& entry = file.entry_of_value;
  if (entry.empty()) {
    file.matrix.values = read_values(a, file.matrix.values.size());
  } else {
    const auto places = std::size_t(*std::max_element(entry.begin(), entry.end())) + 1;
    const std::vector<double> values = read_values(a, places);
    for (std::size_t i = 0; i < entry.size(); ++i)
      file.matrix.values[i] = values[std::size_t(entry[i])];
  }
  file.has_values = true;
}

// Returns the matrix without its values.
template <class To, class From>
sparse::Csr<To> pattern_of(sparse::Csr<From>&& matrix) {
  return {matrix.rows,           matrix.cols, matrix.block, std::move(matrix.row_begin),
          std::move(matrix.col), {}};
}

// Reads a mask whose entries are blocks.
Weights read_block_mask(const Arguments& a) {
  sparse::Csr<double> mask = io::read_mask(load_text(a.matrix), a.matrix).matrix;
  if (a.is_mask_transposed) mask = sparse::transpose(mask);
  sparse::Csr<float> matrix = pattern_of<float>(std::move(mask));
  matrix.rows *= a.block.rows;
  matrix.cols *= a.block.cols;
  matrix.block = a.block;
  sparse::fill_signs(matrix, a.seed);
  const std::int64_t rows = matrix.rows, cols = matrix.cols;
  return {sparse::checked(std::move(matrix)), rows, cols,
          a.matrix + " (a mask; values are +1 or -1)"};
}

// Returns the weights of the file, whose matrix is in elements; no value if none is given.
std::optional<Weights> read_weights(const Arguments& a) {
  if (a.matrix.empty()) return std::nullopt;
  if (a.is_block_mask) return read_block_mask(a);
  io::ReadMatrix file = io::read_weights(a.matrix);
  if (!a.values.empty()) take_values(a, file);
  Weights weights{{}, file.matrix.rows, file.matrix.cols, a.matrix};
  sparse::Csr<float> elements;
  if (file.has_values) {
    sparse::RangeFit fit = sparse::fit_range(std::move(file.matrix), a.data_type, a.matrix);
    weights.source += sparse::note_of(fit);
    weights.scale_exponent = fit.exponent;
    elements = std::move(fit.weights);
  } else {
    elements = pattern_of<float>(std::move(file.matrix));
    sparse::fill_signs(elements, a.seed);
    weights.source += kPatternNote;
  }
  weights.matrix = sparse::checked(std::move(elements));
  weights.of_file = weights.matrix;
  return weights;
}

// Draws the pattern of the options, which must be small enough.
sparse::Csr<float> draw(const Arguments& a) {
  try {
    return sparse::draw_pattern(round_up(a.output_size, a.block.rows),
                                round_up(a.input_size, a.block.cols), a.block, a.density, a.seed,
                                a.pattern);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::LimitExceeded) throw;
    throw Error(error.code(),
                fmt::format("--output-size {} --input-size {} --block-size {} x {} --density {} "
                            "--pattern {}: {}",
                            a.output_size, a.input_size, a.block.rows, a.block.cols, a.density,
                            to_string(a.pattern), error.what()));
  }
}

// Gives the product the sizes of a sparse operand that was read from a file.
void take_stored_sizes(const Arguments& a, const Weights& stored, MatMulProblem& p) {
  if (a.matrix.empty()) return;
  const bool left = p.side == SparseSide::Left;
  const bool turned = left ? p.transpose_lhs : p.transpose_rhs;
  const std::int64_t rows = turned ? stored.cols : stored.rows;
  const std::int64_t cols = turned ? stored.rows : stored.cols;
  for (const auto& [size, own, name] :
       {std::tuple{left ? &p.m : &p.k, rows, left ? "--m" : "--k"},
        std::tuple{left ? &p.k : &p.n, cols, left ? "--k" : "--n"}}) {
    if (*size != 0 && *size != own)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{} is {}, but {} has {}; omit it", name, *size, a.matrix, own));
    *size = own;
  }
}

Weights draw_group(const Arguments& a) {
  const std::string kind = a.pattern == sparse::PatternSpec{} ? "" : to_string(a.pattern) + ", ";
  Weights weights{{},
                  a.output_size,
                  a.input_size,
                  fmt::format("random pattern, {}seed {}; values ", kind, a.seed)};
  sparse::Csr<float> drawn = draw(a);
  if (a.values.empty()) {
    weights.source += "are +1 or -1";
  } else {
    const std::size_t places = drawn.values.size();
    sparse::Csr<double> matrix = pattern_of<double>(std::move(drawn));
    matrix.values = read_values(a, places);
    sparse::RangeFit fit = sparse::fit_range(std::move(matrix), a.data_type, a.values);
    weights.source += "of " + a.values + sparse::note_of(fit);
    weights.scale_exponent = fit.exponent;
    drawn = std::move(fit.weights);
  }
  weights.matrix = sparse::checked(std::move(drawn));
  return weights;
}

// Refuses what the planner would refuse before the patterns of all groups are drawn.
void check_groups(const Arguments& a) {
  if (a.groups == 1 || is_host(a) || a.pod.is_used()) return;
  const device::Machine machine = make_machine(a);
  if (a.groups > machine.tiles)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("--groups is {}; it must be in 1..{}, the tiles of {}", a.groups,
                            machine.tiles, machine.name));
}

// Brings the weights of a file, which has one group, into whole blocks, or draws those of each
// group.
Weights make_weights(const Arguments& a, std::optional<Weights> file) {
  check_groups(a);
  if (file) {
    file->matrix = in_whole_blocks(file->matrix, a.block);
    return *std::move(file);
  }
  Weights weights = draw_group(a);
  Arguments next = a;
  for (std::int64_t g = 1; g < a.groups; ++g) {
    ++next.seed;  // every group has a pattern of its own
    weights.further.push_back(draw_group(next).matrix);
  }
  return weights;
}

Weights make_product_weights(Arguments& a, std::optional<Weights> file) {
  MatMulProblem& product = *a.product;
  Arguments stored = a;
  stored.output_size = sparse_shape(product).rows;
  stored.input_size = sparse_shape(product).cols;
  stored.groups = product.groups;
  Weights weights = make_weights(stored, std::move(file));
  take_stored_sizes(a, weights, product);
  if (stores_transposed_weights(product)) {
    weights.matrix = sparse::transpose(weights.matrix);
    for (auto& matrix : weights.further) matrix = sparse::transpose(matrix);
    std::swap(weights.rows, weights.cols);
  }
  a.output_size = weights.rows;
  a.input_size = weights.cols;
  a.block = weights.matrix->block;
  a.batch_size = layer_of(product).size.z;
  return weights;
}

}  // namespace

Weights make_weights(const Arguments& a) { return make_weights(a, read_weights(a)); }

Weights make_weights_of_run(Arguments& a, std::string& block_choice) {
  std::optional<Weights> file = read_weights(a);
  const auto ones = file && a.chooses_block ? pattern_of_file(*file) : std::nullopt;
  block_choice = choose_block(a, {}, ones ? &*ones : nullptr);
  return a.product ? make_product_weights(a, std::move(file)) : make_weights(a, std::move(file));
}

std::optional<sparse::Csr<double>> pattern_of_file(const Weights& weights) {
  if (!weights.of_file) return std::nullopt;
  const sparse::Csr<float>& m = **weights.of_file;
  return sparse::Csr<double>{m.rows,      m.cols, m.block,
                             m.row_begin, m.col,  std::vector<double>(m.values.size(), 1.0)};
}

void use_kernel_blocks(Weights& weights) {
  weights.matrix = study::in_kernel_blocks(weights.matrix, weights.rows, weights.cols);
}

std::int64_t Weights::empty_rows() const {
  std::int64_t count = sparse::empty_block_rows(*matrix);
  for (const auto& of_group : further) count += sparse::empty_block_rows(*of_group);
  return count;
}

std::vector<sparse::CheckedCsr<float>> Weights::matrices() const {
  std::vector<sparse::CheckedCsr<float>> all{matrix};
  all.insert(all.end(), further.begin(), further.end());
  return all;
}

Problem make_problem(const Arguments& a, const Weights& weights) {
  std::int64_t blocks = 0;
  for (const auto& of_group : weights.matrices()) blocks += of_group->blocks();
  return make_problem(a, weights, weights.matrix->block, blocks);
}

Problem make_problem(const Arguments& a, const Weights& weights, BlockShape block,
                     std::int64_t blocks) {
  Problem problem = problem_of(a);
  problem.size = {weights.groups(), weights.rows, weights.cols, a.batch_size};
  problem.block = block;
  const Dims size = problem.size_in_blocks();
  problem.density =
      double(blocks) * double(block.area()) / (double(size.g) * double(size.x) * double(size.y));
  return problem;
}

}  // namespace tessera::tools
