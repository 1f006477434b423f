#include "tessera/bench/layer/grid_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/bench/planner/skewed_patterns.hpp"
#include "tessera/io/read.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

constexpr std::uint64_t kGridSeed = 7;
constexpr double kMostFlops = 4e9;  // of a case

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

// The columns of grid.tsv.
enum ListColumn {
  Group,
  Matrices,
  Densities,
  Patterns,
  Blocks,
  Columns,
  Passes,
  First,
  Types,
  kColumns
};

struct Sides {
  std::int64_t rows = 0, cols = 0;
};
Sides parse_sides(const std::string& text) {
  Sides sides;
  char by = 0;
  std::istringstream stream(text);
  if (!(stream >> sides.rows >> by >> sides.cols) || by != 'x' || !stream.eof())
    throw std::runtime_error("the grid has sides \"" + text + "\"; give them as 768x3072");
  return sides;
}

// A layer has real weights: files that cannot be read as such, of complex numbers for example, are
// left out.
std::optional<sparse::Csr<float>> read_if_real(const std::filesystem::path& file) {
  try {
    return read_weights(file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::BadInput) throw;
    return std::nullopt;
  }
}

// The matrices of a line, with one density, one pattern and one block.
std::vector<GridCase> matrices_of(const std::vector<std::string>& line,
                                  const std::filesystem::path& shared) {
  std::vector<GridCase> cases;
  for (const std::string& matrix : split(line[Matrices], ','))
    for (const std::string& pattern : split(line[Patterns], ',')) {
      if (pattern == "file") {
        for (const auto& file : matrix_files(shared / matrix)) {
          const auto read = read_if_real(file);
          if (!read || read->blocks() == 0) continue;  // other libraries refuse empty ones
          const sparse::Csr<float>& weights = *read;
          GridCase c{.group = line[Group], .pattern = file.stem().string(), .file = file};
          c.layer.x = weights.rows, c.layer.y = weights.cols;
          c.layer.density = double(weights.blocks()) / (double(c.layer.x) * double(c.layer.y));
          cases.push_back(c);
        }
        continue;
      }
      const auto [rows, cols] = parse_sides(matrix);
      for (const std::string& density : split(line[Densities], ','))
        for (const std::string& block : split(line[Blocks], ',')) {
          const auto [high, wide] = parse_sides(block);
          GridCase c{.group = line[Group], .pattern = pattern};
          c.layer.block = high, c.layer.block_columns = wide;
          c.layer.x = round_up(rows, high), c.layer.y = round_up(cols, wide);
          c.layer.density = std::stod(density);
          cases.push_back(c);
        }
    }
  return cases;
}

void add_calls(const std::vector<std::string>& line, const GridCase& matrix,
               std::vector<GridCase>& to) {
  for (const std::string& pass : split(line[Passes], ','))
    for (const std::string& columns : split(line[Columns], ','))
      for (const std::string& type : split(line[Types], ',')) {
        GridCase c = matrix;
        c.layer.pass = parse_pass(pass);
        c.layer.z = std::stoll(columns);
        c.layer.type = type;
        c.batch_first = line[First] == "batch";
        const LayerCase& l = c.layer;
        if (2 * double(l.x) * double(l.y) * l.density * double(l.z) <= kMostFlops) to.push_back(c);
      }
}

}  // namespace

sparse::Csr<float> read_weights(const std::filesystem::path& file) {
  const sparse::Csr<double> read = io::read_matrix(file.string()).matrix;
  return {read.rows,      read.cols, read.block,
          read.row_begin, read.col,  std::vector<float>(read.values.begin(), read.values.end())};
}

std::vector<std::filesystem::path> matrix_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored))
    if (const auto kind = entry.path().extension(); kind == ".smtx" || kind == ".mtx")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string GridCase::name() const {
  return fmt::format("{}x{} {} {:.3g} {}x{} {} z{} {} {}", layer.x, layer.y, pattern, layer.density,
                     layer.shape().rows, layer.shape().cols, to_string(layer.pass), layer.z,
                     batch_first ? "batch" : "features", layer.type);
}

std::vector<GridCase> read_grid(const std::filesystem::path& list,
                                const std::filesystem::path& shared) {
  std::ifstream in(list);
  if (!in) throw std::runtime_error("cannot read the grid " + list.string());
  std::vector<GridCase> cases;
  for (std::string text; std::getline(in, text);) {
    if (text.empty() || text.front() == '#') continue;
    const std::vector<std::string> line = split(text, '\t');
    if (line.size() != kColumns)
      throw std::runtime_error(fmt::format("the grid has a line of {} columns, not {}: {}",
                                           line.size(), int{kColumns}, text));
    for (const GridCase& matrix : matrices_of(line, shared)) add_calls(line, matrix, cases);
  }
  return cases;
}

sparse::Csr<float> grid_weights(const GridCase& c) {
  const LayerCase& l = c.layer;
  if (!c.file.empty()) return read_weights(c.file);
  if (c.pattern == "random")
    return sparse::random_pattern(l.x, l.y, l.shape(), l.density, kGridSeed);
  const Skew skew = c.pattern == "power" ? Skew::PowerLawRows : Skew::Banded;
  return skewed_pattern(skew, {l.x, l.y, l.shape(), l.density}, kGridSeed);
}

}  // namespace tessera::bench
