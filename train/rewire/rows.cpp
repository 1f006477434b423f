#include "tessera/train/rewire/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/host/best_places.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/train/rewire/drop.hpp"
#include "tessera/train/rewire/internal/scores.hpp"

namespace tessera::train {
namespace {

using host::Candidate;
using sparse::BlockAt;
using sparse::Csr;

std::int64_t stored_in(const Csr<float>& m, std::int64_t row) {
  return m.row_begin[std::size_t(row) + 1] - m.row_begin[std::size_t(row)];
}

// `most(row)` is the largest number that a row may have.
template <class Most>
void check_rows(const Csr<float>& m, std::span<const std::int64_t> per_row, const char* what,
                std::string_view name, Most&& most) {
  if (std::ssize(per_row) != m.block_rows())
    throw_invalid(fmt::format("{} row by row: {}: {} numbers for {} rows of blocks", what, name,
                              per_row.size(), m.block_rows()));
  for (std::int64_t row = 0; row < m.block_rows(); ++row)
    if (per_row[std::size_t(row)] < 0 || per_row[std::size_t(row)] > most(row))
      throw_invalid(
          fmt::format("{} row by row: {}: {} blocks in row {}; the number must be in 0..{}", what,
                      name, per_row[std::size_t(row)], row, most(row)));
}

void check_growth(const Csr<float>& taken, std::span<const std::int64_t> per_row,
                  std::string_view name) {
  check_rows(taken, per_row, "growth", name,
             [&](std::int64_t row) { return taken.block_cols() - stored_in(taken, row); });
}

// Returns the columns of a row that are free, ascending.
std::vector<std::int32_t> free_columns(const Csr<float>& taken, std::int32_t row) {
  std::vector<std::int32_t> free;
  auto next = taken.row_begin[std::size_t(row)];
  for (std::int32_t col = 0; col < taken.block_cols(); ++col)
    if (next < taken.row_begin[std::size_t(row) + 1] && taken.col[std::size_t(next)] == col)
      ++next;
    else
      free.push_back(col);
  return free;
}

// Returns the lowest free places of each row.
std::vector<BlockAt> first_of_rows(const Csr<float>& taken, std::span<const std::int64_t> per_row) {
  std::vector<BlockAt> places;
  for (std::int32_t row = 0; row < taken.block_rows(); ++row) {
    const std::vector<std::int32_t> free = free_columns(taken, row);
    for (std::int64_t i = 0; i < per_row[std::size_t(row)]; ++i)
      places.push_back({row, free[std::size_t(i)]});
  }
  return places;
}

// The places of largest gradient of a row of blocks, or its first place with a score that is not
// finite, as if the row were the only one.
struct BestOfRow {
  std::vector<BlockAt> places;
  std::optional<BlockAt> bad;
};

BestOfRow best_of_row(const Csr<float>& taken, std::int32_t row, std::int64_t k, BlockScore pool,
                      MatrixView<const float> gradients) {
  const BlockShape block = taken.block;
  std::vector<Candidate> candidates;
  for (const std::int32_t col : free_columns(taken, row)) {
    const std::int64_t first = col * block.cols;
    const float score = host::score_of(
        gradients.sub({0, gradients.rows}, {std::min(first, gradients.cols),
                                            std::min(first + block.cols, gradients.cols)}),
        block, pool);
    if (!(score <= host::kLargestScore)) return {{}, BlockAt{0, col}};
    candidates.push_back({score, {0, col}});
  }
  host::BestPlaces best(k, std::ssize(candidates));
  best.add(candidates);
  return {best.places(), {}};
}

}  // namespace

std::vector<std::int64_t> even_rows(std::int64_t blocks, std::int64_t block_rows) {
  std::vector<std::int64_t> rows(std::size_t(block_rows), blocks / block_rows);
  for (std::int64_t row = 0; row < blocks % block_rows; ++row) ++rows[std::size_t(row)];
  return rows;
}

Csr<float> random_even_rows(std::int64_t rows, std::int64_t cols, BlockShape block,
                            std::int64_t blocks, std::uint64_t seed) {
  Csr<float> m = sparse::random_pattern(rows, cols, block, 0, seed);
  const std::vector<BlockAt> places = random_of_rows(m, even_rows(blocks, m.block_rows()), seed);
  return sparse::with_change(m, {{}, places});
}

std::vector<BlockAt> smallest_of_rows(const Csr<float>& weights,
                                      std::span<const std::int64_t> per_row,
                                      std::string_view name) {
  check_rows(weights, per_row, "drop", name,
             [&](std::int64_t row) { return stored_in(weights, row); });
  std::vector<BlockAt> dropped;
  for (std::int32_t row = 0; row < weights.block_rows(); ++row) {
    const std::int64_t first = row * weights.block.rows;
    const Csr<float> one = sparse::rows_of(weights, {first, first + weights.block.rows});
    for (const BlockAt at : smallest_blocks(one, per_row[std::size_t(row)], name))
      dropped.push_back({row, at.col});
  }
  return dropped;
}

std::vector<BlockAt> largest_of_rows(const Csr<float>& taken,
                                     std::span<const GradientBatch> batches,
                                     std::span<const std::int64_t> per_row, BlockScore pool,
                                     Executor& executor, std::string_view name) {
  check_growth(taken, per_row, name);
  host::check_batches(taken, batches, name);
  // All scores are 0 then, and of equal ones the lower place is taken.
  if (batches.empty()) return first_of_rows(taken, per_row);
  constexpr std::int64_t kElements = std::int64_t{1} << 18;  // of a panel of 1 MiB
  const std::int64_t height = taken.block.rows;
  const std::int64_t rows =
      std::max(height, kElements / std::max<std::int64_t>(taken.cols, 1) / height * height);
  std::vector<BestOfRow> found(per_row.size());
  host::for_each_gradient_panel(
      {rows, taken.cols}, batches, executor,
      [&](const host::PanelAt& at, MatrixView<const float> panel) {
        for (std::int64_t r = 0; r < panel.rows; r += height) {
          const auto row = static_cast<std::int32_t>((at.rows.begin + r) / height);
          const Range own{r, std::min(r + height, panel.rows)};
          found[std::size_t(row)] = best_of_row(taken, row, per_row[std::size_t(row)], pool,
                                                panel.sub(own, {0, panel.cols}));
        }
      });
  std::vector<BlockAt> places;
  for (std::int32_t row = 0; row < taken.block_rows(); ++row) {
    const auto& [best, bad] = found[std::size_t(row)];
    if (bad) host::refuse_score({row, bad->col}, name);
    for (const BlockAt at : best) places.push_back({row, at.col});
  }
  return places;
}

std::vector<BlockAt> random_of_rows(const Csr<float>& taken, std::span<const std::int64_t> per_row,
                                    std::uint64_t seed, std::string_view name) {
  check_growth(taken, per_row, name);
  Random random(seed);
  std::vector<BlockAt> places;
  for (std::int32_t row = 0; row < taken.block_rows(); ++row) {
    const std::vector<std::int32_t> free = free_columns(taken, row);
    for (const std::int64_t i :
         sparse::random_choice(std::ssize(free), per_row[std::size_t(row)], random.bits()))
      places.push_back({row, free[std::size_t(i)]});
  }
  return places;
}

}  // namespace tessera::train
