#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "tessera/base/float_mode.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/row_values.hpp"
#include "tessera/verify/internal/doubts.hpp"
#include "tessera/verify/internal/matrix_sums.hpp"
#include "tessera/verify/internal/weighted_sums.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::verify {
namespace {

// The weights of gradients: kBlockBits for the rows and columns of a block each, and more for
// blocks. A gradient of elements has no rows within blocks.
constexpr int kBlockBits = 3;

// A weighted sum, and the sum of the squares of what was added.
struct WeightedSum {
  double sum = 0, squares = 0;
};

// Partial sums that are added to in turn, because an addition to one of them takes several cycles.
class PartialSums {
 public:
  void add(std::int64_t turn, double value) { sums_[std::size_t(turn) % kParts] += value; }
  double total() const { return std::accumulate(sums_.begin(), sums_.end(), 0.0); }

 private:
  static constexpr std::size_t kParts = 8;
  std::array<double, kParts> sums_{};
};

// Sums over the rows of blocks of one side of gradients.
template <class T>
class BlockSums {
 public:
  BlockSums(MatrixView<const T> side, std::int64_t length)
      : side_(side), length_(length), weights_(internal::weights_of(length, kBlockBits)) {
    for (const double weight : weights_) squares_.push_back(float(weight * weight));
  }

  // Writes the sum of the rows of a row of blocks to `sums` [z]; returns the sum of their squares.
  double add_up(std::int64_t block_row, double* sums) {
    const std::int64_t begin = block_row * length_;
    const Range rows{begin, std::min(begin + length_, side_.rows)};
    std::fill_n(sums, side_.cols, 0.0);
    of_columns_.assign(std::size_t(side_.cols), 0.0f);
    internal::add_matrix<T>(side_.sub(rows, {0, side_.cols}), {weights_.data(), squares_.data()},
                            sums, of_columns_.data());
    PartialSums squares;
    for (std::int64_t z = 0; z < side_.cols; ++z) squares.add(z, of_columns_[std::size_t(z)]);
    return squares.total();
  }

 private:
  MatrixView<const T> side_;
  std::int64_t length_;
  std::vector<double> weights_;
  std::vector<float> squares_, of_columns_;
};

template <class T>
class GradientCheck {
 public:
  GradientCheck(const sparse::Csr<float>& pattern, std::span<const float> gradient,
                MatrixView<const T> q_grad, MatrixView<const T> s, const Rounding& rounding,
                const MemoryDamage& damage)
      : pattern_(pattern),
        gradient_(gradient),
        q_grad_(q_grad),
        s_(s),
        rounding_(rounding),
        bits_(std::max(2, internal::weight_bits(s.rows * pattern.block.rows) - 2 * kBlockBits)),
        doubts_(pattern.rows, s.rows, rounding, damage) {
    const double largest =
        internal::largest_whole(q_grad) * std::max(1.0, internal::largest_whole(s));
    rounds_ = !(largest * double(s.cols) <= internal::exact_up_to(rounding));
    if (!multiplies_rows()) sum_up_blocks();
  }

  void check_row(std::int64_t block_row) {
    WeightedSum expected, got;
    if (!multiplies_rows()) q_squares_ = of_q_->add_up(block_row, q_sums_.data());
    for (std::int64_t b = pattern_.row_begin[std::size_t(block_row)];
         b < pattern_.row_begin[std::size_t(block_row) + 1]; ++b) {
      const double weight = internal::weight_of(pattern_.col[std::size_t(b)], bits_);
      if (multiplies_rows())
        add_element(block_row, b, weight, expected, got);
      else
        add_block(block_row, b, weight, expected, got);
    }
    const double usual =
        internal::usual_distance(double(s_.cols), expected.squares, got.squares, rounding_);
    if (doubts_.compare(expected.sum, got.sum, rounds_ ? internal::kSuspicious * usual : 0))
      recompute(block_row);
  }

  const Checksums& checksums() const { return doubts_.checksums(); }

 private:
  // True: the rows of the operands are multiplied as they are, without sums over blocks.
  bool multiplies_rows() const {
    return pattern_.block.is_element() && q_grad_.rows_are_contiguous() && s_.rows_are_contiguous();
  }
  bool is_inside(std::int64_t row, std::int64_t col) const {
    return row < q_grad_.rows && col < s_.rows;
  }

  void sum_up_blocks() {
    of_q_.emplace(q_grad_, pattern_.block.rows);
    row_weights_ = internal::weights_of(pattern_.block.rows, kBlockBits);
    col_weights_ = internal::weights_of(pattern_.block.cols, kBlockBits);
    q_sums_.resize(std::size_t(s_.cols));
    of_s_.emplace(s_, pattern_.block.cols);
    const auto rows = std::size_t(ceil_div(s_.rows, pattern_.block.cols));
    s_sums_.resize(rows);
    s_squares_.resize(rows);
  }

  // Returns the sums over a row of blocks of s, which are computed when they are asked for first.
  const double* sums_of_s(std::int64_t block_row) {
    std::vector<double>& sums = s_sums_[std::size_t(block_row)];
    if (sums.empty()) {
      sums.resize(std::size_t(s_.cols));
      s_squares_[std::size_t(block_row)] = of_s_->add_up(block_row, sums.data());
    }
    return sums.data();
  }

  void add_element(std::int64_t row, std::int64_t b, double weight, WeightedSum& expected,
                   WeightedSum& got) const {
    const std::int64_t col = pattern_.col[std::size_t(b)];
    if (!is_inside(row, col)) return;
    const internal::RowProduct product =
        internal::multiply_rows<T>(q_grad_.row(row), s_.row(col), s_.cols);
    expected.sum += weight * product.sum;
    expected.squares += weight * weight * product.squares;
    const double value = weight * double(gradient_[std::size_t(b)]);
    got.sum += value;
    got.squares += value * value;
  }

  void add_block(std::int64_t block_row, std::int64_t b, double weight, WeightedSum& expected,
                 WeightedSum& got) {
    const BlockShape block = pattern_.block;
    const std::int64_t col = pattern_.col[std::size_t(b)];
    expected.sum += weight * internal::dot(q_sums_.data(), sums_of_s(col), s_.cols);
    expected.squares +=
        weight * weight * q_squares_ * s_squares_[std::size_t(col)] / double(s_.cols);
    const float* const values = gradient_.data() + b * block.area();
    const std::int64_t rows = std::min(block.rows, q_grad_.rows - block_row * block.rows);
    const std::int64_t cols = std::min(block.cols, s_.rows - col * block.cols);
    PartialSums sums, squares;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) {
        const double value = row_weights_[std::size_t(i)] * col_weights_[std::size_t(j)] *
                             double(values[i * block.cols + j]);
        sums.add(i + j, value);
        squares.add(i + j, value * value);
      }
    got.sum += weight * sums.total();
    got.squares += weight * weight * squares.total();
  }

  void recompute(std::int64_t block_row) {
    const std::int64_t begin = block_row * pattern_.block.rows;
    for (std::int64_t row = begin; row < begin + pattern_.block.rows; ++row)
      sparse::for_each_in_row(pattern_, row, [&](std::size_t value, std::int64_t col) {
        if (is_inside(row, col))
          doubts_.recompute(gradient_[value], internal::compute_gradient<T>(q_grad_, row, s_, col),
                            row, col);
      });
  }

  const sparse::Csr<float>& pattern_;
  std::span<const float> gradient_;  // in the order of its values
  MatrixView<const T> q_grad_, s_;
  Rounding rounding_;
  int bits_;
  internal::Doubts doubts_;
  bool rounds_ = true;
  // Empty if rows are multiplied as they are.
  std::optional<BlockSums<T>> of_q_, of_s_;
  std::vector<double> row_weights_, col_weights_;  // within a block
  std::vector<double> q_sums_;                     // of the current row of blocks
  double q_squares_ = 0;
  // The sums over rows of blocks of s, [rows of blocks][z], and those of the squares. A row is
  // empty until a row that is compared needs it.
  std::vector<std::vector<double>> s_sums_;
  std::vector<double> s_squares_;
};

// Returns the distance between the rows of blocks that are compared.
std::int64_t row_step(BlockShape block, GradientRows compared) {
  // A row of elements costs as much as in the pass, so one in 128 keeps the check at about a
  // hundredth. Rows of blocks cost less, but their sums over operands do not.
  constexpr std::int64_t kOneIn = 128, kOneBlockIn = 64;
  if (compared == GradientRows::All) return 1;
  return block.is_element() ? kOneIn : kOneBlockIn;
}

}  // namespace

template <class T>
Checksums check_gradient(const sparse::Csr<float>& pattern, std::span<const float> gradient,
                         MatrixView<const T> q_grad, MatrixView<const T> s,
                         const Rounding& rounding, GradientRows compared,
                         const MemoryDamage& damage) {
  const DefaultFloatMode mode;
  TESSERA_ASSERT(gradient.size() == pattern.values.size());
  GradientCheck<T> check(pattern, gradient, q_grad, s, rounding, damage);
  const std::int64_t step = damage.slots > 0 ? 1 : row_step(pattern.block, compared);
  for (std::int64_t block_row = 0; block_row < pattern.block_rows(); block_row += step)
    check.check_row(block_row);
  return check.checksums();
}

#define TESSERA_CHECK_GRADIENT(T)                                                              \
  template Checksums check_gradient(const sparse::Csr<float>&, std::span<const float>,         \
                                    MatrixView<const T>, MatrixView<const T>, const Rounding&, \
                                    GradientRows, const MemoryDamage&);
TESSERA_CHECK_GRADIENT(float)
TESSERA_CHECK_GRADIENT(Half)
TESSERA_CHECK_GRADIENT(BFloat16)
#undef TESSERA_CHECK_GRADIENT

}  // namespace tessera::verify
