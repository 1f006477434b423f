#include "tessera/partitioner/internal/holdings.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/partitioner/internal/index.hpp"

namespace tessera::partitioner::internal {
namespace {

// A separate GradA bucket has two words per non-zero: the index of its value and its row.
constexpr std::int64_t kGradAWordsPerBlock = 2;

Capacity header_room(const TileGrid& grid) {
  const codelets::RecordShape forward{grid.block.is_element(), grid.grad_w, grid.workers};
  const codelets::RecordShape grad_a{true, false, grid.workers};
  return {codelets::fixed_record_words(forward), 0,
          grid.separate_grad_a ? codelets::fixed_record_words(grad_a) : 0};
}

}  // namespace

Holdings::Holdings(const Pieces& pieces, const TileGrid& grid)
    : pieces_(&pieces), grid_(grid), header_(header_room(grid)) {
  row_mark_.resize(index(grid.x_range(0).size() / grid.block.rows));
  if (grid.separate_grad_a) col_mark_.resize(index(grid.size.y / grid.block.cols));
  home_.resize(index(grid.buckets()));
  for (std::int64_t b = 0; b < grid.buckets(); ++b) home_[index(b)] = home_room(b);
  set_capacity(grid);
}

Capacity Holdings::home_room(std::int64_t bucket) {
  const auto runs = pieces_->runs_of(bucket);
  if (runs.empty()) return {};
  Capacity room = header_;
  const std::int64_t blocks = pieces_->blocks_of(bucket);
  room += {kRowWords * static_cast<std::int64_t>(runs.size()) + blocks, blocks, 0};
  room.grad_a_words = grad_a_words_alone(runs);
  return room;
}

std::int64_t Holdings::grad_a_words_alone(std::span<const Run> runs) {
  if (!grid_.separate_grad_a || runs.empty()) return 0;
  ++mark_;
  std::int64_t words = header_.grad_a_words;
  for (const Run& run : runs) {
    words += kRowWords * new_columns(run) + kGradAWordsPerBlock * run.count;
    mark(run);
  }
  return words;
}

std::int64_t Holdings::least_buckets() const {
  const std::int64_t blocks = pieces_->items();
  const Capacity content{blocks + kRowWords * pieces_->row_count(), blocks,
                         grid_.separate_grad_a ? kGradAWordsPerBlock * blocks : 0};
  const Capacity most = capacity_ - header_;
  std::int64_t buckets = 1;
  const auto hold = [&buckets](std::int64_t all, std::int64_t each) {
    if (all > 0 && buckets > 0) buckets = each > 0 ? std::max(buckets, ceil_div(all, each)) : 0;
  };
  hold(content.words, most.words);
  hold(content.blocks, most.blocks);
  hold(content.grad_a_words, most.grad_a_words);
  return buckets;
}

void Holdings::set_capacity(const TileGrid& grid) {
  grid_ = grid;
  capacity_ = {grid.meta_words - codelets::kEndMarkerWords, grid.blocks,
               grid.separate_grad_a ? grid.grad_a_words - codelets::kEndMarkerWords : 0};
  used_ = home_;
  whole_.assign(home_.size(), true);
  guests_.assign(home_.size(), {});
  guest_cells_.assign(home_.size(), {});
}

void Holdings::evict(std::int64_t bucket) {
  TESSERA_ASSERT(whole_home(bucket) && guests(bucket).empty());
  whole_[index(bucket)] = false;
  used_[index(bucket)] = {};
}

bool Holdings::holds(std::int64_t bucket, std::int32_t cell) const {
  if (whole_home(bucket) && cell == cell_of(bucket) && !pieces_->runs_of(bucket).empty())
    return true;
  const auto& cells = guest_cells(bucket);
  return std::find(cells.begin(), cells.end(), cell) != cells.end();
}

bool Holdings::may_take(std::int64_t bucket, std::int32_t cell) const {
  const Capacity room = free(bucket);
  if (room.blocks < 1 || room.words < 1) return false;
  return room.words >= header_.words + kRowWords + 1 || holds(bucket, cell);
}

void Holdings::open(std::int64_t bucket, std::int32_t cell) {
  open_bucket_ = bucket;
  open_cell_ = cell;
  new_record_ = !holds(bucket, cell);
  ++mark_;
  if (new_record_) return;
  if (whole_home(bucket) && cell == cell_of(bucket))
    for (const Run& run : pieces_->runs_of(bucket)) mark(run);
  for (const Guest& guest : guests(bucket))
    if (guest.cell == cell) mark(guest.run);
}

void Holdings::mark(const Run& run) {
  row_mark_[index(run.row)] = mark_;
  if (!grid_.separate_grad_a) return;
  for (std::int32_t i = run.begin; i < run.begin + run.count; ++i)
    col_mark_[index(pieces_->pattern.col[index(i)])] = mark_;
}

std::int64_t Holdings::new_columns(const Run& run) const {
  std::int64_t count = 0;
  for (std::int32_t i = run.begin; i < run.begin + run.count; ++i)
    count += col_mark_[index(pieces_->pattern.col[index(i)])] != mark_;
  return count;
}

Capacity Holdings::extra(const Run& run) const {
  Capacity room = new_record_ ? header_ : Capacity{};
  room.words += run.count + (row_mark_[index(run.row)] == mark_ ? 0 : kRowWords);
  room.blocks += run.count;
  if (grid_.separate_grad_a)
    room.grad_a_words += kGradAWordsPerBlock * run.count + kRowWords * new_columns(run);
  return room;
}

template <class ColumnAt>
std::int32_t Holdings::fitting(const Run& run, ColumnAt&& column_at) const {
  const Capacity room = free(open_bucket_) - extra(run.prefix(0));
  const auto most =
      std::max<std::int64_t>(0, std::min({std::int64_t{run.count}, room.words, room.blocks}));
  if (!grid_.separate_grad_a) return static_cast<std::int32_t>(most);
  std::int64_t left = room.grad_a_words;
  for (std::int32_t n = 0; n < most; ++n) {
    const bool known = col_mark_[index(pieces_->pattern.col[index(column_at(n))])] == mark_;
    left -= kGradAWordsPerBlock + (known ? 0 : kRowWords);
    if (left < 0) return n;
  }
  return static_cast<std::int32_t>(most);
}

std::int32_t Holdings::fitting_front(const Run& run) const {
  return fitting(run, [&run](std::int32_t n) { return run.begin + n; });
}

std::int32_t Holdings::fitting_back(const Run& run) const {
  return fitting(run, [&run](std::int32_t n) { return run.begin + run.count - 1 - n; });
}

void Holdings::add(const Run& run) {
  used_[index(open_bucket_)] += extra(run);
  if (new_record_) guest_cells_[index(open_bucket_)].push_back(open_cell_);
  new_record_ = false;
  guests_[index(open_bucket_)].push_back({open_cell_, run});
  mark(run);
}

Capacity Holdings::alone(const std::vector<Run>& runs) const {
  if (runs.empty()) return {};
  Capacity room = header_;
  for (const Run& run : runs) room += {kRowWords + run.count, run.count, 0};
  return room;
}

namespace {

// Counts the columns in which a piece has blocks.
class ColumnCounter {
 public:
  ColumnCounter(const Pieces& pieces, const TileGrid& grid)
      : col_(pieces.pattern.col), mark_(index(grid.size.y / grid.block.cols)) {}

  std::int64_t count(std::span<const Run> runs) {
    ++piece_;
    std::int64_t columns = 0;
    for (const Run& run : runs)
      for (std::int32_t i = run.begin; i < run.begin + run.count; ++i)
        columns += std::exchange(mark_[index(col_[index(i)])], piece_) != piece_;
    return columns;
  }

 private:
  std::span<const std::int32_t> col_;
  std::vector<std::int64_t> mark_;
  std::int64_t piece_ = 0;
};

// Columns are counted only for pieces that might not fit if every block or column had its own.
bool grad_a_fits_at_home(const Pieces& pieces, const TileGrid& grid) {
  const std::int64_t words =
      grid.grad_a_words - codelets::kEndMarkerWords - header_room(grid).grad_a_words;
  std::optional<ColumnCounter> counter;
  for (std::int64_t b = 0; b < grid.buckets(); ++b) {
    const std::int64_t blocks = pieces.blocks_of(b);
    const std::int64_t for_columns = words - kGradAWordsPerBlock * blocks;
    if (blocks == 0 || kRowWords * std::min(blocks, pieces.y_step) <= for_columns) continue;
    if (!counter) counter.emplace(pieces, grid);
    if (kRowWords * counter->count(pieces.runs_of(b)) > for_columns) return false;
  }
  return true;
}

}  // namespace

bool fits_at_home(const Pieces& pieces, const TileGrid& grid) {
  const std::int64_t words = grid.meta_words - codelets::kEndMarkerWords - header_room(grid).words;
  for (const Pieces::Part& part : pieces.parts)
    for (std::size_t b = 0; b < part.blocks.size(); ++b) {
      const std::int64_t rows = part.run_begin[b + 1] - part.run_begin[b];
      if (part.blocks[b] > grid.blocks) return false;
      if (rows > 0 && kRowWords * rows + part.blocks[b] > words) return false;
    }
  return !grid.separate_grad_a || grad_a_fits_at_home(pieces, grid);
}

}  // namespace tessera::partitioner::internal
