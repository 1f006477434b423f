#include "tessera/sparse/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/internal/drawing.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::sparse {
namespace {

constexpr std::pair<std::string_view, PatternKind> kNames[] = {
    {"uniform", PatternKind::Uniform},
    {"banded", PatternKind::Banded},
    {"rowwise", PatternKind::RowWise},
    {"power-law", PatternKind::PowerLaw},
    {"saw-tooth", PatternKind::SawTooth}};
constexpr std::int64_t kTeeth = 16;

[[noreturn]] void refuse_pattern(const std::string& why) {
  throw Error(ErrorCode::InvalidArgument, "pattern: " + why);
}

bool read_number(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// Takes exactly `count` of `places` places that are visited one by one; every set is equally
// likely.
class Picker {
 public:
  Picker(std::int64_t places, std::int64_t count) : places_(places), count_(count) {}
  bool take(Random& random) {
    const bool taken = count_ > 0 && random.below(places_) < count_;
    --places_;
    count_ -= taken;
    return taken;
  }

 private:
  std::int64_t places_, count_;
};

// Returns the number of blocks of each row: in proportion to its weight, at most `most` per row,
// and `total` in all.
std::vector<std::int64_t> shares(const std::vector<double>& weights, std::int64_t most,
                                 std::int64_t total) {
  std::vector<std::int64_t> result(weights.size());
  const auto fill = [&](double scale) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      result[i] = std::int64_t(std::min(double(most), scale * weights[i]));
    return std::accumulate(result.begin(), result.end(), std::int64_t{0});
  };
  // A hundred halvings determine the scale to the last bit of a double.
  double low = 0, high = double(most) / *std::min_element(weights.begin(), weights.end());
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (fill(middle) <= total ? low : high) = middle;
  }
  for (std::int64_t left = total - fill(low); left > 0;)
    for (std::size_t i = 0; i < result.size() && left > 0; ++i)
      if (result[i] < most) ++result[i], --left;
  return result;
}

std::vector<double> row_weights(PatternKind kind, std::int64_t rows, Random& random) {
  std::vector<double> weights(std::size_t(rows), 1.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (kind == PatternKind::PowerLaw) weights[i] = 1.0 / double(i + 1);
    if (kind == PatternKind::SawTooth) weights[i] = double(std::int64_t(i) % kTeeth + 1);
  }
  if (kind == PatternKind::PowerLaw)
    for (std::size_t i = weights.size(); i > 1; --i)
      std::swap(weights[i - 1], weights[std::size_t(random.below(std::int64_t(i)))]);
  return weights;
}

// Appends a row with the block columns for which `is_taken` returns true.
template <class Taken>
void add_row(Csr<float>& matrix, const Taken& is_taken) {
  for (std::int64_t c = 0; c < matrix.block_cols(); ++c)
    if (is_taken(c)) matrix.col.push_back(std::int32_t(c));
  matrix.row_begin.push_back(matrix.blocks());
}

// Returns the `width` columns of a row that are nearest to the diagonal.
Range band(std::int64_t row, std::int64_t rows, std::int64_t cols, std::int64_t width) {
  const double middle = (double(row) + 0.5) * double(cols) / double(rows);
  const auto begin = std::clamp(std::int64_t(std::floor(middle - double(width) / 2 + 0.5)),
                                std::int64_t{0}, cols - width);
  return {begin, begin + width};
}

void draw_rows(Csr<float>& matrix, PatternKind kind, std::int64_t total, Random& random) {
  const std::int64_t rows = matrix.block_rows(), cols = matrix.block_cols();
  const auto counts = shares(row_weights(kind, rows, random), cols, total);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t count = counts[std::size_t(r)];
    const Range near = band(r, rows, cols, count);
    Picker picker(cols, count);
    add_row(matrix, [&](std::int64_t c) {
      return kind == PatternKind::Banded ? near.begin <= c && c < near.end : picker.take(random);
    });
  }
}

void draw_n_of_m(Csr<float>& matrix, const PatternSpec& spec, Random& random) {
  const std::int64_t cols = matrix.block_cols();
  for (std::int64_t r = 0; r < matrix.block_rows(); ++r) {
    Picker group(0, 0);
    add_row(matrix, [&](std::int64_t c) {
      const std::int64_t size = std::min(spec.m, cols - c);
      if (c % spec.m == 0) group = Picker(size, std::min(spec.n, size));
      return group.take(random);
    });
  }
}

// Returns a range of elements in blocks; both ends are rounded down.
Range on_grid(Range elements, std::int64_t side) {
  return {elements.begin / side, elements.end / side};
}

void draw_weighted(Csr<float>& matrix, const WeightedArea& area, double density, Random& random) {
  const std::int64_t places = matrix.block_rows() * matrix.block_cols();
  const std::int64_t total = std::llround(density * double(places));
  const Range rows = on_grid(area.rows, matrix.block.rows),
              cols = on_grid(area.cols, matrix.block.cols);
  const std::int64_t inside = rows.size() * cols.size();
  const double wanted = density * area.weight * double(inside);
  std::int64_t taken = wanted >= double(inside) ? inside : std::llround(wanted);
  taken = std::clamp(taken, total - std::min(total, places - inside), std::min(total, inside));
  Picker in(inside, taken), out(places - inside, total - taken);
  for (std::int64_t r = 0; r < matrix.block_rows(); ++r)
    add_row(matrix, [&](std::int64_t c) {
      const bool is_inside = rows.begin <= r && r < rows.end && cols.begin <= c && c < cols.end;
      return (is_inside ? in : out).take(random);
    });
}

void check_area(const WeightedArea& area, std::int64_t rows, std::int64_t cols) {
  const auto inside = [](Range r, std::int64_t size) {
    return 0 <= r.begin && r.begin <= r.end && r.end <= size;
  };
  if (!inside(area.rows, rows) || !inside(area.cols, cols))
    refuse_pattern(
        fmt::format("the weighted area {{{},{}}} .. {{{},{}}} must be inside {{0,0}} .. {{{},{}}} "
                    "and must not end before it begins",
                    area.rows.begin, area.cols.begin, area.rows.end, area.cols.end, rows, cols));
  if (!(area.weight >= 0 && std::isfinite(area.weight)))
    refuse_pattern(fmt::format("the weight of an area is {}; it must be at least 0", area.weight));
}

void check_spec(const PatternSpec& spec, std::int64_t rows, std::int64_t cols) {
  if (spec.kind == PatternKind::NOfM && !(1 <= spec.n && spec.n <= spec.m))
    refuse_pattern(fmt::format("{}:{} must be n:m with 1 <= n <= m", spec.n, spec.m));
  if (!spec.area) return;
  if (spec.kind != PatternKind::Uniform)
    refuse_pattern("a weighted area needs a uniform pattern; omit one of the two");
  check_area(*spec.area, rows, cols);
}

// Throws Error{LimitExceeded} for a draw that takes too much time or memory.
void check_cost(const DrawingCost& cost) {
  const auto check = [](double amount, double most, const char* unit) {
    if (amount > most)
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("pattern: drawing it needs {:.3g} {}; the limit is {:.3g}; choose a "
                              "smaller matrix, smaller blocks or fewer of them",
                              amount, unit, most));
  };
  check(cost.places, kMostDrawn.places, "places to visit");
  check(cost.values, kMostDrawn.values, "values");
  check(cost.bytes, kMostDrawn.bytes, "bytes");
}

}  // namespace

PatternSpec parse_pattern(std::string_view text) {
  for (const auto& [name, kind] : kNames)
    if (text == name) return {.kind = kind};
  PatternSpec spec{.kind = PatternKind::NOfM};
  const std::size_t colon = text.find(':');
  if (colon == text.npos || !read_number(text.substr(0, colon), spec.n) ||
      !read_number(text.substr(colon + 1), spec.m) || spec.n < 1 || spec.m < spec.n)
    refuse_pattern(
        fmt::format("\"{}\" must be uniform, banded, rowwise, power-law, saw-tooth or n:m with "
                    "1 <= n <= m, for example 2:4",
                    text.substr(0, 60)));
  return spec;
}

std::string to_string(const PatternSpec& spec) {
  if (spec.kind == PatternKind::NOfM) return fmt::format("{}:{}", spec.n, spec.m);
  const auto name = std::find_if(std::begin(kNames), std::end(kNames),
                                 [&](const auto& n) { return n.second == spec.kind; });
  std::string text(name->first);
  if (spec.area)
    text += fmt::format(", {} times denser in {{{},{}}} .. {{{},{}}}", spec.area->weight,
                        spec.area->rows.begin, spec.area->cols.begin, spec.area->rows.end,
                        spec.area->cols.end);
  return text;
}

DrawingCost drawing_cost(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                         const PatternSpec& spec) {
  check_spec(spec, rows, cols);
  internal::check_drawing(rows, cols, block, density);
  const std::int64_t block_rows = rows / block.rows, block_cols = cols / block.cols;
  DrawingCost cost;
  cost.places = double(block_rows) * double(block_cols);
  double blocks = density * cost.places;
  if (spec.kind == PatternKind::NOfM)
    blocks = double(block_rows) * (double(block_cols / spec.m) * double(spec.n) +
                                   double(std::min(spec.n, block_cols % spec.m)));
  cost.values = blocks * double(block.area());
  // A place and a column for each block; a pointer, a weight and a count for each row.
  cost.bytes = cost.values * double(sizeof(float)) + blocks * 12 + double(block_rows) * 24;
  return cost;
}

Csr<float> draw_pattern(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                        std::uint64_t seed, const PatternSpec& spec) {
  check_cost(drawing_cost(rows, cols, block, density, spec));
  if (spec.kind == PatternKind::Uniform && !spec.area)
    return random_pattern(rows, cols, block, density, seed);
  Csr<float> matrix;
  matrix.rows = rows, matrix.cols = cols, matrix.block = block;
  matrix.row_begin = {0};
  const std::int64_t places = matrix.block_rows() * matrix.block_cols();
  Random random(seed);
  if (spec.kind == PatternKind::NOfM)
    draw_n_of_m(matrix, spec, random);
  else if (spec.area)
    draw_weighted(matrix, *spec.area, density, random);
  else
    draw_rows(matrix, spec.kind, std::llround(density * double(places)), random);
  // The signs have a seed of their own, so that they do not depend on the pattern.
  fill_signs(matrix, random.bits());
  return matrix;
}

}  // namespace tessera::sparse
