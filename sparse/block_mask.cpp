#include "tessera/sparse/block_mask.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/base/exp.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::sparse {
namespace {

void check_mask_size(std::int64_t rows, std::int64_t cols, BlockShape block) {
  const bool legal = rows >= 1 && cols >= 1 && block.rows >= 1 && block.cols >= 1 &&
                     rows % block.rows == 0 && cols % block.cols == 0;
  if (legal) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("a mask of {} x {} in blocks of {} x {}; sizes must be 1 or more and "
                          "multiples of the block",
                          rows, cols, block.rows, block.cols));
}

void check_mask_values(const Csr<float>& mask, std::size_t values, const char* name) {
  if (values == mask.values.size()) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{} has {} values; the mask has {}", name, values, mask.values.size()));
}

// Appends a block with the elements that are kept, if there is one.
template <class Keep>
void append_kept_block(Csr<float>& mask, std::int64_t block_row, std::int64_t block_col,
                       const Keep& keep) {
  const BlockShape block = mask.block;
  const std::size_t before = mask.values.size();
  bool any = false;
  for (std::int64_t r = 0; r < block.rows; ++r)
    for (std::int64_t c = 0; c < block.cols; ++c) {
      const bool kept = keep(block_row * block.rows + r, block_col * block.cols + c);
      mask.values.push_back(kept ? 1.0f : 0.0f);
      any = any || kept;
    }
  if (any)
    mask.col.push_back(static_cast<std::int32_t>(block_col));
  else
    mask.values.resize(before);
}

// Calls visit(first, count) for the runs of adjacent values of a row of blocks.
template <class Visit>
void for_each_run(const Csr<float>& mask, std::int64_t block_row, std::int64_t row,
                  const Visit& visit) {
  const BlockShape block = mask.block;
  const std::int64_t begin = mask.row_begin[std::size_t(block_row)];
  const std::int64_t end = mask.row_begin[std::size_t(block_row) + 1];
  if (block.rows == 1) return visit(begin * block.cols, (end - begin) * block.cols);
  for (std::int64_t b = begin; b < end; ++b) visit(b * block.area() + row * block.cols, block.cols);
}

// The number of sums and maxima that are taken side by side, so that they become vectors.
constexpr std::int64_t kLanes = 8;
using Lanes = std::array<float, kLanes>;

// Calls visit(lane, i) for i in 0 .. count - 1, eight neighbours after each other.
template <class Visit>
void for_each_lane(std::int64_t count, const Visit& visit) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) visit(std::size_t(lane), i + lane);
  for (std::int64_t lane = 0; i < count; ++i, ++lane) visit(std::size_t(lane), i);
}

// Takes the largest kept scores of a run.
void take_largest(const float* scores, const float* kept, std::int64_t count, Lanes& largest) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  for_each_lane(count, [&](std::size_t lane, std::int64_t i) {
    const float score = kept[i] != 0 ? scores[i] : kLeast;
    largest[lane] = score > largest[lane] ? score : largest[lane];
  });
}

// Writes exp(score - largest) of the kept scores of a run. Returns their sum.
double exponentials(const float* scores, const float* kept, float largest, std::int64_t count,
                    float* out) {
  Lanes sums{};
  for_each_lane(count, [&](std::size_t lane, std::int64_t i) {
    const float e = exp_of_negative(scores[i] - largest);
    const float value = kept[i] != 0 ? e : 0.0f;
    out[i] = value;
    sums[lane] += value;
  });
  double sum = 0;
  for (const float lane : sums) sum += double(lane);
  return sum;
}

// Calls body(block row, row inside it) for every row, on the executor if there is one.
template <class Body>
void for_each_row_of(const Csr<float>& mask, Executor* executor, const Body& body) {
  const auto rows_of = [&](std::int64_t block_row) {
    for (std::int64_t row = 0; row < mask.block.rows; ++row) body(block_row, row);
  };
  if (executor != nullptr) return executor->for_each(mask.block_rows(), rows_of);
  for (std::int64_t block_row = 0; block_row < mask.block_rows(); ++block_row) rows_of(block_row);
}

}  // namespace

Csr<float> block_mask(std::int64_t rows, std::int64_t cols, BlockShape block,
                      const std::function<bool(std::int64_t, std::int64_t)>& keep) {
  check_mask_size(rows, cols, block);
  Csr<float> mask;
  mask.rows = rows;
  mask.cols = cols;
  mask.block = block;
  for (std::int64_t r = 0; r < mask.block_rows(); ++r) {
    for (std::int64_t c = 0; c < mask.block_cols(); ++c) append_kept_block(mask, r, c, keep);
    mask.row_begin.push_back(mask.blocks());
  }
  return mask;
}

Csr<float> causal_mask(std::int64_t size, BlockShape block) {
  return block_mask(size, size, block, [](std::int64_t r, std::int64_t c) { return c <= r; });
}

Csr<float> window_mask(std::int64_t size, BlockShape block, std::int64_t global,
                       std::int64_t window) {
  if (global < 0 || window < 0)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("a window of {} and {} global rows; both must be 0 or more", window, global));
  return block_mask(size, size, block, [=](std::int64_t r, std::int64_t c) {
    return r < global || c < global || std::abs(r - c) <= window;
  });
}

Csr<float> random_mask(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                       std::uint64_t seed) {
  Csr<float> mask = random_pattern(rows, cols, block, density, seed);
  std::fill(mask.values.begin(), mask.values.end(), 1.0f);
  return mask;
}

Csr<float> keep_triangle(const Csr<float>& mask, Triangle triangle) {
  Csr<float> result;
  result.rows = mask.rows;
  result.cols = mask.cols;
  result.block = mask.block;
  for (std::int64_t r = 0; r < mask.block_rows(); ++r) {
    for (std::int64_t b = mask.row_begin[std::size_t(r)]; b < mask.row_begin[std::size_t(r) + 1];
         ++b) {
      const float* value = mask.values.data() + b * mask.block.area();
      append_kept_block(result, r, mask.col[std::size_t(b)], [&](std::int64_t x, std::int64_t y) {
        return *value++ != 0 && (triangle == Triangle::Lower ? y <= x : x <= y);
      });
    }
    result.row_begin.push_back(result.blocks());
  }
  return result;
}

void softmax_rows(const Csr<float>& mask, std::span<const float> scores, std::span<float> out,
                  Executor* executor) {
  const DefaultFloatMode mode;
  check_mask_values(mask, scores.size(), "scores");
  check_mask_values(mask, out.size(), "out");
  for_each_row_of(mask, executor, [&](std::int64_t block_row, std::int64_t row) {
    constexpr float kLeast = -std::numeric_limits<float>::infinity();
    Lanes lanes;
    lanes.fill(kLeast);
    for_each_run(mask, block_row, row, [&](std::int64_t first, std::int64_t count) {
      take_largest(scores.data() + first, mask.values.data() + first, count, lanes);
    });
    float largest = *std::max_element(lanes.begin(), lanes.end());
    if (largest == kLeast) largest = 0;  // exp() of every kept score is 0
    double sum = 0;
    for_each_run(mask, block_row, row, [&](std::int64_t first, std::int64_t count) {
      sum += exponentials(scores.data() + first, mask.values.data() + first, largest, count,
                          out.data() + first);
    });
    const auto factor = static_cast<float>(sum == 0 ? 0 : 1 / sum);
    for_each_run(mask, block_row, row, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i) out[std::size_t(i)] *= factor;
    });
  });
}

void softmax_rows_gradient(const Csr<float>& mask, std::span<const float> softmax,
                           std::span<const float> gradient, std::span<float> out,
                           Executor* executor) {
  const DefaultFloatMode mode;
  check_mask_values(mask, softmax.size(), "softmax");
  check_mask_values(mask, gradient.size(), "gradient");
  check_mask_values(mask, out.size(), "out");
  for_each_row_of(mask, executor, [&](std::int64_t block_row, std::int64_t row) {
    double sum = 0;
    for_each_run(mask, block_row, row, [&](std::int64_t first, std::int64_t count) {
      for (auto i = std::size_t(first); i < std::size_t(first + count); ++i)
        sum += mask.values[i] != 0 ? double(softmax[i]) * double(gradient[i]) : 0.0;
    });
    for_each_run(mask, block_row, row, [&](std::int64_t first, std::int64_t count) {
      for (auto i = std::size_t(first); i < std::size_t(first + count); ++i) {
        const double g = double(softmax[i]) * (double(gradient[i]) - sum);
        out[i] = mask.values[i] != 0 ? static_cast<float>(g) : 0.0f;
      }
    });
  });
}

}  // namespace tessera::sparse
