#include "tessera/bench/planner/skewed_patterns.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/bench/planner/shuffle.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

// The exponent of Zipf's law that is usual for the degrees of real graphs.
constexpr double kPowerLaw = 0.8;
// The weight of places that a skew avoids: they are taken only when the others are full.
constexpr double kAvoided = 1e-9;

// Returns the weights 1, 2^-0.8, 3^-0.8 ... in random order.
std::vector<double> power_law(std::int64_t count, Random& random) {
  std::vector<double> weights(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    weights[std::size_t(i)] = std::pow(double(i + 1), -kPowerLaw);
  shuffle(weights, random);
  return weights;
}

struct Weights {
  Skew skew;
  double half_band = 0;            // of a matrix of side 1
  std::vector<double> rows, cols;  // of the power laws

  Weights(Skew kind, std::int64_t row_count, std::int64_t col_count, double density, Random& random)
      : skew(kind),
        // A band of this half width covers twice as many places as there are blocks.
        half_band(1 - std::sqrt(1 - std::min(2 * density, 1.0))),
        rows(power_law(row_count, random)),
        cols(power_law(col_count, random)) {}

  double operator()(std::int64_t row, std::int64_t col) const {
    const double down = (double(row) + 0.5) / double(rows.size());
    const double across = (double(col) + 0.5) / double(cols.size());
    switch (skew) {
      case Skew::PowerLawRows:
        return rows[std::size_t(row)];
      case Skew::PowerLawRowsAndColumns:
        return rows[std::size_t(row)] * cols[std::size_t(col)];
      case Skew::Banded:
        return std::abs(down - across) <= half_band ? 1 : kAvoided;
      case Skew::SawTooth:
        return 4 * down - std::floor(4 * down);
      case Skew::DenseCorner:
        return down < 0.25 && across < 0.25 ? 15 : 1;
    }
    throw Error(ErrorCode::Internal, "unknown skew");
  }
};

// The method of Efraimidis and Spirakis gives every place an exponential waiting time, at the rate
// of its weight, and takes the places with the shortest times.
std::vector<std::int64_t> draw(const Weights& weights, std::int64_t count, Random& random) {
  const auto rows = std::ssize(weights.rows), cols = std::ssize(weights.cols);
  std::vector<std::pair<double, std::int64_t>> arrivals;
  arrivals.reserve(static_cast<std::size_t>(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col)
      arrivals.emplace_back(-std::log1p(-random.unit()) / weights(row, col), row * cols + col);
  std::nth_element(arrivals.begin(), arrivals.begin() + count, arrivals.end());
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i) places.push_back(arrivals[std::size_t(i)].second);
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

std::string to_string(Skew skew) {
  switch (skew) {
    case Skew::PowerLawRows:
      return "power-rows";
    case Skew::PowerLawRowsAndColumns:
      return "power-both";
    case Skew::Banded:
      return "banded";
    case Skew::SawTooth:
      return "saw-tooth";
    case Skew::DenseCorner:
      return "corner";
  }
  throw Error(ErrorCode::Internal, "unknown skew");
}

sparse::Csr<float> skewed_pattern(Skew skew, const PatternRequest& request, std::uint64_t seed) {
  Random random(seed);
  sparse::Csr<float> matrix{request.rows, request.cols, request.block, {}, {}, {}};
  const std::int64_t rows = matrix.block_rows(), cols = matrix.block_cols();
  const auto count = std::llround(request.density * double(rows * cols));
  matrix.row_begin.assign(static_cast<std::size_t>(rows + 1), 0);
  const Weights weights(skew, rows, cols, request.density, random);
  for (const std::int64_t place : draw(weights, count, random)) {
    ++matrix.row_begin[std::size_t(place / cols + 1)];
    matrix.col.push_back(static_cast<std::int32_t>(place % cols));
  }
  std::partial_sum(matrix.row_begin.begin(), matrix.row_begin.end(), matrix.row_begin.begin());
  sparse::fill_signs(matrix, seed);
  return matrix;
}

}  // namespace tessera::bench
