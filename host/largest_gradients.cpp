#include "tessera/host/largest_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::host {

using codelets::ScoredPlace;
using sparse::BlockAt;
using sparse::Csr;

namespace {

void check_search(const Csr<float>& taken, std::int64_t k, const GradientOperands& operands,
                  std::string_view name) {
  const auto refuse = [name](const std::string& what) {
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("search for the largest gradients: {}: {}", name, what));
  };
  const auto& [q_grad, s] = operands;
  if (round_up(q_grad.rows, taken.block.rows) != taken.rows ||
      round_up(s.rows, taken.block.cols) != taken.cols || q_grad.cols != s.cols)
    refuse(
        fmt::format("the gradient of the output is {} x {} and the input {} x {}; they must be "
                    "{} x z and {} x z",
                    q_grad.rows, q_grad.cols, s.rows, s.cols, taken.rows, taken.cols));
  const std::int64_t blocks = taken.block_rows() * taken.block_cols();
  if (blocks - 1 > std::int64_t{std::numeric_limits<std::uint32_t>::max()})
    refuse(fmt::format("the matrix has {} blocks; at most 2^32 can be numbered", blocks));
  const std::int64_t free = blocks - taken.blocks();
  if (k < 0 || k > free)
    refuse(fmt::format("{} of {} free places; the number must be in 0..{}", k, free, free));
}

// The best places of the panels of one thread.
struct ThreadSearch {
  std::vector<ScoredPlace> places;  // [2 * k], once the thread has a panel
  std::vector<std::uint32_t> bits;  // a bit for each block of the current panel
  codelets::BestList list;
};

// Sets the bits of the blocks of a panel that the pattern stores.
void mark_taken(const Csr<float>& taken, Range block_rows, Range block_cols,
                std::vector<std::uint32_t>& bits) {
  const std::int64_t columns = block_cols.size();
  bits.assign(std::size_t(ceil_div(block_rows.size() * columns, 32)), 0);
  for (std::int64_t r = block_rows.begin; r < block_rows.end; ++r) {
    const auto first = taken.col.begin() + taken.row_begin[std::size_t(r)],
               last = taken.col.begin() + taken.row_begin[std::size_t(r) + 1];
    for (auto at = std::lower_bound(first, last, block_cols.begin);
         at != last && *at < block_cols.end; ++at) {
      const std::int64_t bit = (r - block_rows.begin) * columns + *at - block_cols.begin;
      bits[std::size_t(bit / 32)] |= 1U << (bit % 32);
    }
  }
}

void search_panel(const Csr<float>& taken, codelets::BlockScore score, std::int64_t k,
                  const PanelAt& at, MatrixView<const float> panel, ThreadSearch& search) {
  if (search.places.empty()) {
    search.places.resize(std::size_t(2 * k));
    search.list = {.places = search.places.data(), .keep = k};
  }
  const BlockShape block = taken.block;
  const Range rows{at.rows.begin / block.rows, ceil_div(at.rows.end, block.rows)};
  const Range cols{at.cols.begin / block.cols, ceil_div(at.cols.end, block.cols)};
  mark_taken(taken, rows, cols, search.bits);
  codelets::add_best({.gradients = panel.data,
                      .rows = panel.rows,
                      .columns = panel.cols,
                      .block = block,
                      .score = score,
                      .first_row = rows.begin,
                      .first_column = cols.begin,
                      .matrix_columns = taken.block_cols(),
                      .taken = search.bits},
                     search.list);
}

}  // namespace

std::vector<BlockAt> largest_gradients(const Csr<float>& taken, std::int64_t k,
                                       codelets::BlockScore score, const GradientOperands& operands,
                                       Executor& executor, std::string_view name) {
  check_search(taken, k, operands, name);
  if (k == 0) return {};
  std::vector<ThreadSearch> threads(static_cast<std::size_t>(executor.threads()));
  for_each_gradient_panel(gradient_panel_size(taken.block), {&operands, 1}, executor,
                          [&](const PanelAt& at, MatrixView<const float> panel) {
                            search_panel(taken, score, k, at, panel,
                                         threads[std::size_t(at.thread)]);
                          });
  std::vector<ScoredPlace> best;
  for (const ThreadSearch& thread : threads)
    best.insert(best.end(), thread.places.begin(), thread.places.begin() + thread.list.count);
  std::nth_element(best.begin(), best.begin() + k - 1, best.end(), codelets::is_better);
  best.resize(std::size_t(k));
  std::sort(best.begin(), best.end(),
            [](const ScoredPlace& a, const ScoredPlace& b) { return a.place < b.place; });
  std::vector<BlockAt> places;
  places.reserve(best.size());
  for (const ScoredPlace& found : best) {
    const auto columns = static_cast<std::uint32_t>(taken.block_cols());
    const BlockAt at{std::int32_t(found.place / columns), std::int32_t(found.place % columns)};
    if (!std::isfinite(found.score))
      throw Error(ErrorCode::BadInput,
                  fmt::format("growth of blocks: {}: the gradient in block row {}, block column {} "
                              "is not finite",
                              name, at.row, at.col));
    places.push_back(at);
  }
  return places;
}

}  // namespace tessera::host
