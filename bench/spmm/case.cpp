#include "tessera/bench/spmm/case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/spmm/eigen.hpp"
#include "tessera/bench/spmm/scipy.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/prepared.hpp"
#include "tessera/host/sddmm.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

Matrix<float> turned(const Matrix<float>& m) {
  Matrix<float> result(m.cols(), m.rows());
  for (std::int64_t r = 0; r < m.rows(); ++r)
    for (std::int64_t c = 0; c < m.cols(); ++c) result(c, r) = m(r, c);
  return result;
}

// The row of each element of a matrix in compressed rows.
std::vector<std::int32_t> rows_of(const sparse::Csr<float>& m) {
  std::vector<std::int32_t> rows(m.col.size());
  for (std::size_t r = 0; r + 1 < m.row_begin.size(); ++r)
    std::fill(rows.begin() + m.row_begin[r], rows.begin() + m.row_begin[r + 1], std::int32_t(r));
  return rows;
}

// Adds the words of a list in eight lanes, which the compiler turns into vectors, so reading is the
// only limit.
template <class T>
std::uint64_t sum_words(const std::vector<T>& list) {
  std::uint64_t lanes[8] = {}, words[8];
  const auto* bytes = reinterpret_cast<const char*>(list.data());
  const std::size_t size = list.size() * sizeof(T);
  for (std::size_t at = 0; at + sizeof(words) <= size; at += sizeof(words)) {
    std::memcpy(words, bytes + at, sizeof(words));
    for (std::size_t i = 0; i < 8; ++i) lanes[i] += words[i];
  }
  return std::accumulate(lanes, lanes + 8, std::uint64_t{0});
}

}  // namespace

SpmmCase::SpmmCase(std::int64_t side_, BlockShape block, double density_, std::int64_t z_)
    : side(side_),
      z(z_),
      density(density_),
      matrix(sparse::random_pattern(side, side, block, density, 1)),
      s(random_matrix<float>(side, z, 2)),
      q(side, z),
      q_batch(z, side) {
  Random random(3);
  for (float& value : matrix.values) value = float(2 * random.unit() - 1);
  elements = sparse::with_block(matrix, BlockShape{1, 1});
  s_batch = turned(s);
}

double SpmmCase::worst_difference(const Matrix<float>& other) const {
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < q.elements().size(); ++i) {
    largest = std::max(largest, double(std::abs(q.elements()[i])));
    worst = std::max(worst, double(std::abs(q.elements()[i] - other.elements()[i])));
  }
  return worst / largest;
}

SpmmTimes measure(SpmmCase& c, const std::string& python, int repeats) {
  const auto one = sequential();
  const host::Prepared<float> prepared(c.rows(), *one, {.batch = c.z});
  const auto in_batch = std::as_const(c.s_batch).view().transposed();
  const auto out_batch = c.q_batch.view().transposed();
  Matrix<float> q_other(c.side, c.z);
  std::vector<std::function<void()>> bodies = {
      [&] { host::spmm<float>(c.rows(), std::as_const(c.s).view(), c.q.view(), *one); },
      [&] { host::spmm<float>(c.rows(), in_batch, out_batch, *one); },
      [&] { prepared.spmm(std::as_const(c.s).view(), q_other.view(), *one); },
      [&] { prepared.spmm(in_batch, out_batch, *one); }};
  const auto eigen = eigen_product(c.elements, c.s, q_other);
  if (eigen) bodies.push_back(eigen);
  bodies[0]();
  for (std::size_t i = 1; i < bodies.size(); ++i) {
    bodies[i]();
    const bool is_batch = i == 1 || i == 3;
    if (c.worst_difference(is_batch ? turned(c.q_batch) : q_other) > 1e-4)
      throw std::runtime_error(fmt::format("product {} of {} x {} is wrong", i, c.side, c.side));
  }
  const double before = scipy_seconds(c.side, c.density, c.z, python, repeats);
  const std::vector<double> times = medians(bodies, repeats);
  const double after = scipy_seconds(c.side, c.density, c.z, python, repeats);
  return {times[0], times[1], times[2], times[3], eigen ? times[4] : 0, std::min(before, after)};
}

OtherTimes measure_others(SpmmCase& c, int repeats) {
  const auto one = sequential();
  const sparse::Csr<float>& m = c.elements;
  const std::vector<std::int32_t> row = rows_of(m);
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(5);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[std::size_t(random.below(std::int64_t(i)))]);
  std::vector<std::int32_t> mixed_row, mixed_col;
  std::vector<float> mixed_values, gradients(m.values.size());
  for (const std::size_t i : order) {
    mixed_row.push_back(row[i]);
    mixed_col.push_back(m.col[i]);
    mixed_values.push_back(m.values[i]);
  }
  // The lists of compressed rows are those of the transpose in compressed columns.
  const host::CompressedColumns<float, std::int32_t, std::int64_t> columns{
      c.side, c.side, m.row_begin, m.col, m.values};
  const host::CompressedRows<float, std::int32_t, std::int64_t> rows{c.side,      c.side, {1, 1},
                                                                     m.row_begin, m.col,  m.values};
  const host::Coordinates<float> sorted{c.side, c.side, row, m.col, m.values};
  const host::Coordinates<float> mixed{c.side, c.side, mixed_row, mixed_col, mixed_values};
  const auto s = std::as_const(c.s).view();
  const std::vector<double> times =
      medians({[&] { host::spmm<float>(columns, s, c.q.view(), *one); },
               [&] { host::spmm<float>(sorted, s, c.q.view(), *one); },
               [&] { host::spmm<float>(mixed, s, c.q.view(), *one); },
               [&] { host::sddmm<float>(rows, s, s.transposed(), std::span(gradients), *one); }},
              repeats);
  return {times[0], times[1], times[2], times[3]};
}

VectorTimes measure_vector(int repeats) {
  constexpr std::int64_t kSide = 16384;
  const auto one = sequential();
  const sparse::Csr<float> m = sparse::random_pattern(kSide, kSide, {1, 1}, 0.05, 1);
  const host::CompressedRows<float, std::int32_t, std::int64_t> rows{kSide,       kSide, {1, 1},
                                                                     m.row_begin, m.col, m.values};
  const std::vector<float> x(std::size_t(kSide), 1.0f);
  std::vector<float> y(x.size());
  std::uint64_t sum = 0;
  const std::vector<double> times =
      medians({[&] { host::spmv<float>(rows, std::span(x), std::span(y), *one); },
               [&] { sum += sum_words(m.values) + sum_words(m.col); }},
              repeats);
  if (sum == 1) throw std::runtime_error("the lists cannot add up to 1");  // uses the sum
  return {times[0], times[1]};
}

}  // namespace tessera::bench
