#include "tessera/verify/self_check.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/verify/internal/doubts.hpp"
#include "tessera/verify/internal/weighted_sums.hpp"

namespace tessera::verify {
namespace {

using internal::ExactResult;
using internal::WeightedSum;

// The sum of the operands that belongs to a row of results.
struct ExpectedRow {
  WeightedSum sum;
  double terms = 0, magnitude = 0;
  bool whole = true;  // all values of the matrix are whole numbers

  void add(double value, const WeightedSum& of_in) {
    sum.add(value, of_in);
    ++terms;
    magnitude += std::abs(value);
    whole = whole && value == std::trunc(value);
  }
};

template <class T>
void recompute_row(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                   MatrixView<const T> out, std::int64_t row, std::vector<ExactResult>& exact,
                   internal::Doubts& doubts) {
  internal::compute_row<T>(matrix, row, in, exact);
  for (std::int64_t z = 0; z < out.cols; ++z)
    doubts.recompute(double(float(out(row, z))), exact[std::size_t(z)], row, z);
}

}  // namespace

template <class T>
Checksums check_product(const sparse::Csr<float>& matrix, MatrixView<const T> in,
                        MatrixView<const T> out, const Rounding& rounding,
                        const MemoryDamage& damage) {
  const std::vector<double> weights = internal::weights_of(in.cols, internal::weight_bits(in.cols));
  std::vector<WeightedSum> of_in;
  for (std::int64_t y = 0; y < in.rows; ++y) of_in.push_back(internal::sum_of_row(in, y, weights));
  const double largest = internal::largest_whole(in), limit = internal::exact_up_to(rounding);
  internal::Doubts doubts(out.cols, rounding, damage);
  std::vector<ExactResult> exact;  // scratch
  for (std::int64_t x = 0; x < out.rows; ++x) {
    ExpectedRow expected;
    internal::for_each_in_row(matrix, x, [&](std::size_t value, std::int64_t y) {
      if (y < in.rows)
        expected.add(internal::number(T(matrix.values[value])), of_in[std::size_t(y)]);
    });
    const WeightedSum got = internal::sum_of_row(out, x, weights);
    const bool rounds = !(expected.whole && expected.magnitude * largest <= limit);
    const double allowed =
        rounds
            ? internal::kSuspicious * internal::usual_distance(expected.terms, expected.sum.squares,
                                                               got.squares, rounding)
            : 0;
    if (doubts.compare(expected.sum.sum, got.sum, allowed))
      recompute_row(matrix, in, out, x, exact, doubts);
  }
  return doubts.checksums();
}

namespace {

// The sums of one side of gradients: a row for each row of blocks, [block rows][z], with the sum of
// its squares.
struct BlockSums {
  Matrix<double> rows;
  std::vector<double> squares;
};

template <class T>
BlockSums block_sums(MatrixView<const T> side, std::int64_t length, int bits) {
  BlockSums sums{Matrix<double>((side.rows + length - 1) / length, side.cols), {}};
  sums.squares.resize(std::size_t(sums.rows.rows()));
  for (std::int64_t r = 0; r < side.rows; ++r) {
    double* const to = &sums.rows(r / length, 0);
    const double weight = internal::weight_of(r % length, bits);
    for (std::int64_t z = 0; z < side.cols; ++z) {
      const double value = weight * internal::number(side(r, z));
      to[z] += value;
      sums.squares[std::size_t(r / length)] += value * value;
    }
  }
  return sums;
}

double dot(const double* a, const double* b, std::int64_t n) {
  std::array<double, internal::kLanes> sums{};
  internal::in_lanes(n, [&](std::size_t lane, std::int64_t i) { sums[lane] += a[i] * b[i]; });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// The weights of gradients: kBlockBits for the rows and columns of a block each, and `bits` for
// blocks. A block without inner rows has none of the former.
constexpr int kBlockBits = 3;

template <class T>
class GradientCheck {
 public:
  GradientCheck(const sparse::Csr<float>& gradient, MatrixView<const T> q_grad,
                MatrixView<const T> s, const Rounding& rounding, const MemoryDamage& damage)
      : gradient_(gradient),
        q_grad_(q_grad),
        s_(s),
        rounding_(rounding),
        bits_(std::max(2, internal::weight_bits(s.rows * gradient.block.rows) - 2 * kBlockBits)),
        of_q_(block_sums(q_grad, gradient.block.rows, kBlockBits)),
        of_s_(block_sums(s, gradient.block.cols, kBlockBits)),
        doubts_(s.rows, rounding, damage) {
    const double largest =
        internal::largest_whole(q_grad) * std::max(1.0, internal::largest_whole(s));
    rounds_ = !(largest * double(s.cols) <= internal::exact_up_to(rounding));
  }

  void check_row(std::int64_t block_row) {
    const BlockShape block = gradient_.block;
    WeightedSum expected, got;
    for (std::int64_t b = gradient_.row_begin[std::size_t(block_row)];
         b < gradient_.row_begin[std::size_t(block_row) + 1]; ++b) {
      const std::int64_t col = gradient_.col[std::size_t(b)];
      const double weight = internal::weight_of(col, bits_);
      expected.sum += weight * dot(&of_q_.rows(block_row, 0), &of_s_.rows(col, 0), s_.cols);
      expected.squares += weight * weight * of_q_.squares[std::size_t(block_row)] *
                          of_s_.squares[std::size_t(col)] / double(s_.cols);
      for (std::int64_t i = 0; i < block.area(); ++i)
        if (is_inside(block_row * block.rows + i / block.cols, col * block.cols + i % block.cols))
          got.add(weight * internal::weight_of(i / block.cols, kBlockBits) *
                  internal::weight_of(i % block.cols, kBlockBits) *
                  double(gradient_.values[std::size_t(b * block.area() + i)]));
    }
    const double usual =
        internal::usual_distance(double(s_.cols), expected.squares, got.squares, rounding_);
    if (doubts_.compare(expected.sum, got.sum, rounds_ ? internal::kSuspicious * usual : 0))
      recompute(block_row);
  }

  const Checksums& checksums() const { return doubts_.checksums(); }

 private:
  bool is_inside(std::int64_t row, std::int64_t col) const {
    return row < q_grad_.rows && col < s_.rows;
  }

  void recompute(std::int64_t block_row) {
    const std::int64_t begin = block_row * gradient_.block.rows;
    for (std::int64_t row = begin; row < begin + gradient_.block.rows; ++row)
      internal::for_each_in_row(gradient_, row, [&](std::size_t value, std::int64_t col) {
        if (is_inside(row, col))
          doubts_.recompute(gradient_.values[value],
                            internal::compute_gradient<T>(q_grad_, row, s_, col), row, col);
      });
  }

  const sparse::Csr<float>& gradient_;
  MatrixView<const T> q_grad_, s_;
  Rounding rounding_;
  int bits_;
  BlockSums of_q_, of_s_;
  internal::Doubts doubts_;
  bool rounds_ = true;
};

// Returns the distance between the rows of blocks that are compared.
std::int64_t row_step(BlockShape block, GradientRows compared) {
  constexpr std::int64_t kOneIn = 32;
  return compared == GradientRows::All ? 1 : std::max<std::int64_t>(1, kOneIn / block.area());
}

}  // namespace

template <class T>
Checksums check_gradient(const sparse::Csr<float>& gradient, MatrixView<const T> q_grad,
                         MatrixView<const T> s, const Rounding& rounding, GradientRows compared,
                         const MemoryDamage& damage) {
  GradientCheck<T> check(gradient, q_grad, s, rounding, damage);
  const std::int64_t step = damage.slots > 0 ? 1 : row_step(gradient.block, compared);
  for (std::int64_t block_row = 0; block_row < gradient.block_rows(); block_row += step)
    check.check_row(block_row);
  return check.checksums();
}

#define TESSERA_SELF_CHECK(T)                                                                  \
  template Checksums check_product(const sparse::Csr<float>&, MatrixView<const T>,             \
                                   MatrixView<const T>, const Rounding&, const MemoryDamage&); \
  template Checksums check_gradient(const sparse::Csr<float>&, MatrixView<const T>,            \
                                    MatrixView<const T>, const Rounding&, GradientRows,        \
                                    const MemoryDamage&);
TESSERA_SELF_CHECK(float)
TESSERA_SELF_CHECK(Half)
TESSERA_SELF_CHECK(BFloat16)
#undef TESSERA_SELF_CHECK

}  // namespace tessera::verify
