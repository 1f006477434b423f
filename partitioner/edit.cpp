#include "tessera/partitioner/edit.hpp"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>
#include <variant>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/internal/cell_editor.hpp"
#include "tessera/partitioner/internal/index.hpp"

namespace tessera::partitioner {
namespace {

using internal::CellEditor;
using internal::count_words;
using internal::for_each_row;
using internal::index;

template <class Run>
decltype(auto) with_words(const Buckets& buckets, std::int64_t bucket, Run&& run) {
  return std::visit(
      [&](const auto& meta) { return run(meta.data() + bucket * buckets.grid.meta_words); },
      buckets.meta);
}

}  // namespace

RecordCounts count_record(const Buckets& buckets, std::int64_t bucket) {
  return with_words(buckets, bucket, [&](const auto* meta) { return count_words(buckets, meta); });
}

void find_named_rows(const Buckets& buckets, std::int64_t bucket, std::span<char> named) {
  std::fill(named.begin(), named.end(), char{0});
  with_words(buckets, bucket, [&](const auto* meta) {
    for_each_row(buckets.grid, meta, count_words(buckets, meta).rows,
                 [&](std::int64_t row, std::int64_t, std::int32_t) { named[index(row)] = 1; });
  });
}

CellEdits::CellEdits(const Buckets& buckets, std::span<const BlockEdit> edits,
                     std::vector<std::int32_t> shift, Numbering numbering, std::int64_t value_bytes,
                     const Executor& executor)
    : grid_(buckets.grid), numbering_(numbering), shift_(std::move(shift)) {
  TESSERA_ASSERT(grid_.workers == 1 && grid_.splits.z == 1 && !grid_.grad_w &&
                 !grid_.separate_grad_a && buckets.travel.stays_home());
  sort_by_bucket(edits);
  check_capacity(buckets);
  if (fit_) grow_scratch(value_bytes, executor.threads());
}

void CellEdits::sort_by_bucket(std::span<const BlockEdit> edits) {
  const std::int64_t x_step = grid_.x_range(0).size() / grid_.block.rows;
  const std::int64_t y_step = grid_.y_range(0).size() / grid_.block.cols;
  // A list of all columns, because a division for each edit takes longer than the rest.
  std::vector<std::int64_t> cell_of(index(grid_.splits.y * y_step));
  for (std::int64_t c = 0; c < std::ssize(cell_of); ++c)
    cell_of[index(c)] = grid_.bucket_index(0, c / y_step, 0);
  const auto for_each_edit = [&](auto&& visit) {
    std::int64_t first_bucket = 0, end_row = x_step;
    for (const BlockEdit& e : edits) {
      for (; e.row >= end_row; end_row += x_step) first_bucket += grid_.splits.y;
      visit(index(first_bucket + cell_of[index(e.col)]), e);
    }
  };
  edit_begin_.assign(index(grid_.buckets()) + 1, 0);
  for_each_edit([&](std::size_t bucket, const BlockEdit&) { ++edit_begin_[bucket + 1]; });
  for (std::size_t b = 1; b < edit_begin_.size(); ++b) edit_begin_[b] += edit_begin_[b - 1];
  std::vector<std::int64_t> next(edit_begin_.begin(), edit_begin_.end() - 1);
  edits_.resize(edits.size());
  for_each_edit([&](std::size_t bucket, const BlockEdit& e) { edits_[index(next[bucket]++)] = e; });
}

// Every row with an added block may be a new one, and none may disappear.
void CellEdits::check_capacity(const Buckets& buckets) {
  for (std::int64_t b = 0; b < grid_.buckets(); ++b) {
    const RecordCounts before = count_record(buckets, b);
    std::int64_t blocks = before.blocks, rows = before.rows;
    std::int32_t last = -1;
    for (std::int64_t i = edit_begin_[index(b)]; i < edit_begin_[index(b) + 1]; ++i) {
      const BlockEdit& edit = edits_[index(i)];
      // Without branches that depend on the edits, of which every second would be mispredicted.
      const int is_added = edit.number >= 0;
      blocks += 2 * is_added - 1;
      rows += is_added & int{edit.row != last};
      last = is_added != 0 ? edit.row : last;
    }
    rows = std::min(rows, grid_.x_range(b / grid_.splits.y).size() / grid_.block.rows);
    most_rows_ += rows;
    const std::int64_t words =
        codelets::record_words({grid_.block.is_element(), false, 1}, rows, blocks);
    fit_ &= blocks <= grid_.blocks && words + codelets::kEndMarkerWords <= grid_.meta_words;
  }
}

void CellEdits::grow_scratch(std::int64_t value_bytes, int threads) {
  scratch_.resize(index(threads));
  const std::int64_t longest = grid_.y_range(0).size() / grid_.block.cols;
  for (Scratch& scratch : scratch_) {
    scratch.words.resize(index(grid_.meta_words));
    scratch.source.resize(index(grid_.blocks));
    scratch.values.resize(index(grid_.blocks * grid_.block.area() * value_bytes));
    scratch.rows.reserve(index(grid_.x_range(0).size() / grid_.block.rows));
    scratch.row_words.resize(index(longest) + 1);
    scratch.row_source.resize(index(longest) + 1);
    scratch.row_values.resize((index(longest) + 1) * sizeof(float));
    scratch.bin_rows.resize(index(longest) + 1);
    scratch.bin_firsts.resize(index(longest) + 1);
  }
}

std::int64_t CellEdits::lines() const {
  return numbering_ == Numbering::RowByRow ? grid_.splits.x : grid_.splits.y;
}

// The numbers of a line of cells change from its first cell to its last, so one thread does a line.
template <class Word, class T>
void CellEdits::apply_words(Buckets& buckets, std::span<T> values, Executor& executor) noexcept {
  std::atomic<std::int64_t> next = 0;
  executor.for_each(std::ssize(scratch_), [&](std::int64_t thread) {
    CellEditor<Word, T> editor(*this, buckets, values, scratch_[index(thread)]);
    for (std::int64_t line = next++; line < lines(); line = next++) {
      if (numbering_ == Numbering::RowByRow)
        for (std::int64_t y = 0; y < grid_.splits.y; ++y) editor.run(line * grid_.splits.y + y);
      else
        for (std::int64_t x = 0; x < grid_.splits.x; ++x) editor.run(x * grid_.splits.y + line);
    }
  });
}

template <class T>
void CellEdits::apply(Buckets& buckets, std::span<T> values, Executor& executor) noexcept {
  if (grid_.word_bits == 16)
    apply_words<std::uint16_t, T>(buckets, values, executor);
  else
    apply_words<std::uint32_t, T>(buckets, values, executor);
  SpillStats stats;
  for (std::int64_t b = 0; b < grid_.buckets(); ++b) {
    const RecordCounts counts = count_record(buckets, b);
    stats.blocks += counts.blocks;
    stats.records += counts.rows > 0;
    stats.fullest_words = std::max(stats.fullest_words, counts.words + codelets::kEndMarkerWords);
    stats.fullest_blocks = std::max(stats.fullest_blocks, counts.blocks);
  }
  buckets.stats = stats;
}

void CellEdits::apply(Buckets& buckets, Executor& executor) noexcept {
  apply<float>(buckets, {}, executor);
}

template void CellEdits::apply(Buckets&, std::span<float>, Executor&) noexcept;
template void CellEdits::apply(Buckets&, std::span<Half>, Executor&) noexcept;
template void CellEdits::apply(Buckets&, std::span<BFloat16>, Executor&) noexcept;

}  // namespace tessera::partitioner
