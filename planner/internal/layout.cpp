#include "tessera/planner/internal/layout.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/planner/internal/tile_load.hpp"

namespace tessera::planner::internal {
namespace {

std::int64_t round_up_to_double(double value) {
  return static_cast<std::int64_t>(std::ceil(value));
}

// The number of records that fit in a bucket: its own cell's and one that was spilled to it.
constexpr std::int64_t kRecordsPerBucket = 2;

std::int64_t fixed_words(const Case& c, bool grad_w) {
  const bool element = c.problem.is_element_wise();
  const std::int64_t words = codelets::fixed_record_words({element, grad_w, c.machine.workers});
  if (!c.parity() || !element || !grad_w) return words;
  // PopLibs counts 5 words instead of 4 for each worker, and none for their number.
  return words + c.machine.workers - 1;
}

std::int64_t align_words(const Case& c, std::int64_t words) {
  const std::int64_t bytes = std::lcm(c.word_bytes(), c.machine.exchange_bytes_per_cycle);
  // PopLibs takes these bytes for a count of words.
  return round_up(words, c.parity() ? bytes : bytes / c.word_bytes());
}

// Returns the counts of one of the z pieces of a cell. Pieces are cut from the list of non-zeros
// row after row, so a piece may begin and end inside a row.
UniformCounts piece_of(const Case& c, const UniformCounts& cell, std::int64_t z_parts,
                       SizeRule rule) {
  if (rule == SizeRule::LowerBound) {
    // PopLibs gives every bucket the words of its whole cell.
    if (c.parity()) return cell;
    // Averages per row are rounded up and do not fall everywhere when shares shrink: leave them
    // out.
    const std::int64_t total = ceil_div(cell.total, z_parts);
    return {z_parts == 1 ? cell.rows : std::min<std::int64_t>(cell.rows, 1), 0, total};
  }
  if (c.parity()) return {cell.rows, cell.per_row, cell.rows * cell.per_row};
  if (z_parts == 1 || cell.total == 0) return cell;
  const std::int64_t total = ceil_div(cell.total, z_parts);
  return {std::min(cell.rows, ceil_div(total, cell.per_row) + 1), cell.per_row, total};
}

// Returns the share of places that are filled in the fullest cell if rows and columns are
// independent. It is never less than the average.
double fullest_density(const Case& c, const Cut& cut) {
  if (c.pattern == nullptr || c.pattern->blocks == 0 || c.has_map()) return c.problem.density;
  const auto rows = static_cast<double>(c.pattern->row_sums.fullest_share(cut.parts.x));
  const auto cols = static_cast<double>(c.pattern->col_sums.fullest_share(cut.parts.y));
  const double expected = rows * cols / static_cast<double>(c.pattern->blocks);
  const double places = static_cast<double>(cut.share.x * cut.share.y);
  return std::clamp(expected / places, c.problem.density, 1.0);
}

// Returns the distribution of the pattern over the cells of a cut, at the density of the fullest
// cell, or at the average density if the map gives the fullest cell.
Scatter cell_scatter(const Case& c, const Cut& cut) {
  return scatter_of(c, cut.share, fullest_density(c, cut), cut.parts.g * cut.parts.x * cut.parts.y);
}

// The blocks in the cells of a cut.
struct CellFill {
  std::int64_t room = 0;  // capacity of a cell without spills; 0 if the slack alone decides
  double fullest = 0;     // blocks of the fullest cell
};

// PopLibs takes the average cell and the oversize proportion.
bool wants_room(const Case& c) { return !c.parity() && c.options.bucket_confidence > 0; }

CellFill random_fill(const Case& c, const Scatter& scatter) {
  CellFill fill;
  if (wants_room(c)) fill.room = room_for_every_cell(scatter);
  fill.fullest = mean_of_fullest(scatter);
  return fill;
}

// Returns the fill from the pattern's map. A number of standard deviations is added for the blocks
// in bins that edges of cells cut.
CellFill mapped_fill(const Case& c, const Cut& cut) {
  constexpr double kSpreadsOfRoom = 4.5, kSpreadsOfFullest = 1;
  const FullestCell cell = c.pattern->map.fullest(cut.parts.x, cut.parts.y);
  const double most = std::min(cell.most, static_cast<double>(cut.share.x * cut.share.y));
  const auto allow = [&](double spreads) {
    return std::min(most, std::ceil(cell.blocks + spreads * cell.spread - 1e-6));
  };
  return {wants_room(c) ? static_cast<std::int64_t>(allow(kSpreadsOfRoom)) : 0,
          allow(kSpreadsOfFullest)};
}

struct WordsOf {
  const UniformCounts& cell;
  bool grad_w;
  std::int64_t per_block;
  std::int64_t room = 0;       // capacity of a whole cell in blocks, see CellFill
  std::int64_t row_count = 0;  // rows of a cell
};

std::int64_t bucket_words(const Case& c, const Cut& cut, const WordsOf& of, SizeRule rule) {
  const UniformCounts piece = piece_of(c, of.cell, cut.parts.z, rule);
  const std::int64_t body = 2 * piece.rows + of.per_block * piece.total;
  std::int64_t words = round_up_to_double(static_cast<double>(body) * (1 + c.oversize()));
  const std::int64_t room = ceil_div(of.room, cut.parts.z);
  words = std::max(words, 2 * std::min(of.row_count, room) + of.per_block * room);
  if (c.pattern != nullptr) {
    const std::int64_t tiles = cut.parts.product();
    const std::int64_t cut_rows = 1;  // a row that is cut repeats its two words
    const std::int64_t rows = cut_rows + ceil_div(c.pattern->cell_rows.at(cut.parts.y), tiles);
    words = std::max(words, 2 * rows + of.per_block * ceil_div(c.pattern->blocks, tiles));
  }
  words += kRecordsPerBucket * fixed_words(c, of.grad_w);
  if (!c.parity()) words += codelets::kEndMarkerWords;  // PopLibs forgets it
  return align_words(c, words);
}

std::int64_t bucket_blocks(const Case& c, const Cut& cut, std::int64_t room) {
  const std::int64_t tiles = cut.parts.product();
  const std::int64_t block_bytes = c.problem.block.area() * c.input_bytes();
  const std::int64_t step = std::lcm(block_bytes, c.machine.exchange_bytes_per_cycle) / block_bytes;
  const std::int64_t even = ceil_div(c.blocks, tiles);
  auto blocks = std::int64_t{std::llround(static_cast<double>(even) * (1 + c.oversize()))};
  if (c.pattern != nullptr) blocks = std::max(blocks, ceil_div(c.pattern->blocks, tiles));
  return round_up(std::max(blocks, ceil_div(room, cut.parts.z)), step);
}

}  // namespace

PatternSize pattern_size(const PatternStats& stats, BlockShape used) {
  const std::int64_t down = stats.block.rows / used.rows, across = stats.block.cols / used.cols;
  return {stats.blocks() * down * across, CellRows(stats.row_counts, down, across),
          RunningSums(stats.row_counts, down, across), RunningSums(stats.col_counts, across, down),
          PatternMap(stats, used)};
}

Scatter scatter_of(const Case& c, Dims share, double density, std::int64_t cells) {
  const Dims together{1, std::min(c.clump.x, share.x), std::min(c.clump.y, share.y), 1};
  return {.places = ceil_div(share.x, together.x) * ceil_div(share.y, together.y),
          .density = density,
          .cells = cells * (c.pattern == nullptr ? c.options.pattern_count : 1),
          .confidence = c.options.bucket_confidence,
          .size = together.x * together.y,
          .most = share.x * share.y};
}

Case make_case(const Problem& problem, const device::Machine& machine, const Options& options,
               const Candidate& candidate, const PatternSize* pattern) {
  const bool dense = candidate.dense;
  const BlockShape own = problem.block, used = candidate.block;
  Case c{.problem = problem,
         .machine = machine,
         .options = options,
         .candidate = candidate,
         .grains = ceil_div(problem.size_in_blocks(), candidate.grain),
         .pattern = dense ? nullptr : pattern};
  c.problem.block = used;
  if (dense) c.problem.density = 1;
  if (!dense) c.clump = {1, own.rows / used.rows, own.cols / used.cols, 1};
  const Dims size = problem.size_in_blocks();
  const std::int64_t places = ceil_div(size.x, used.rows) * ceil_div(size.y, used.cols);
  c.blocks = size.g * round_up_to_double(static_cast<double>(places) * c.problem.density);
  return c;
}

UniformCounts uniform_counts(std::int64_t rows, std::int64_t cols, double density) {
  const double row_is_empty = std::pow(1.0 - density, static_cast<double>(cols));
  UniformCounts counts;
  counts.rows = round_up_to_double(static_cast<double>(rows) * (1.0 - row_is_empty));
  counts.total = round_up_to_double(static_cast<double>(rows * cols) * density);
  // If the density is so small that the chance of a row rounds to 0, there still is a non-zero.
  if (counts.total > 0) counts.rows = std::max<std::int64_t>(counts.rows, 1);
  counts.per_row = counts.rows == 0 ? 0 : ceil_div(counts.total, counts.rows);
  return counts;
}

BucketSize bucket_size(const Case& c, const Cut& cut, SizeRule rule) {
  const double density = c.problem.density;
  BucketSize size;
  size.cell = uniform_counts(cut.share.x, cut.share.y, density);
  if (c.problem.grad_a) size.cell_swapped = uniform_counts(cut.share.y, cut.share.x, density);
  const bool exact = rule == SizeRule::Exact;
  const bool mapped = exact && c.has_map();
  Scatter scatter = exact ? cell_scatter(c, cut) : Scatter{};
  const CellFill fill = mapped ? mapped_fill(c, cut) : random_fill(c, scatter);
  const std::int64_t room = fill.room;
  size.blocks = bucket_blocks(c, cut, room);
  // PopLibs prices the average tile, and spills at nothing.
  if (exact && !c.parity()) {
    if (mapped) scatter.density = fill.fullest / static_cast<double>(cut.share.x * cut.share.y);
    size.fullest = cell_load(cut.share, fill.fullest, scatter);
    if (mapped)
      size.fullest.mean =
          static_cast<double>(c.pattern->blocks) / static_cast<double>(cut.parts.x * cut.parts.y);
    else
      size.scatter = scatter;
    const std::int64_t capacity = size.blocks * cut.parts.z;
    size.spill_chance = mapped ? static_cast<double>(capacity) < fill.fullest
                               : chance_of_more_than(scatter, capacity);
  }
  const std::int64_t value_step = c.problem.grad_w ? 8 / c.partials_bytes() : 1;
  size.values = round_up(size.blocks * c.problem.block.area(), value_step);
  size.fwd_words = bucket_words(c, cut, {size.cell, c.problem.grad_w, 1, room, cut.share.x}, rule);
  if (c.problem.grad_a && !c.candidate.shared_buckets())
    size.grad_a_words =
        bucket_words(c, cut, {size.cell_swapped, false, 2, room, cut.share.y}, rule);
  return size;
}

std::int64_t most_in_word(const Case& c) { return c.machine.word_bits == 16 ? 65535 : 2147483647; }

StoredNumber largest_stored(const Case& c, const Cut& cut, const BucketSize& bucket) {
  const Dims e = cut.share * c.candidate.grain;
  const std::int64_t factor = codelets::type_factor(c.problem.data_type);
  StoredNumber largest{"nothing", 0};
  const auto stored = [&largest](const char* name, std::int64_t value) {
    if (value > largest.value) largest = {name, value};
  };
  const bool own_grad_a = c.problem.grad_a && !c.candidate.shared_buckets();
  if (c.problem.is_element_wise()) {
    stored("offset of a column's row of S", (e.y - 1) * e.z * factor);
    stored("row of a cell", e.x - 1);
    if (own_grad_a) {
      stored("offset of a column's row of dQ", (e.x - 1) * e.z * factor);
      stored("column of a cell", e.y - 1);
    }
  }
  if (c.parity()) return largest;  // PopLibs meets the other limits while it encodes
  if (own_grad_a) stored("offset of a value in the bucket", bucket.values * factor);
  stored("row of a cell", e.x - 1);
  stored("column of a cell", e.y - 1);
  stored("batch columns of a tile", e.z);
  stored("number of cells", cut.parts.x * cut.parts.y);
  stored("values of a bucket", bucket.values);
  stored("forward meta-information of a bucket", bucket.fwd_words);
  stored("GradA meta-information of a bucket", bucket.grad_a_words);
  return largest;
}

bool words_fit(const Case& c, const Cut& cut, const BucketSize& bucket) {
  return largest_stored(c, cut, bucket).value <= most_in_word(c);
}

}  // namespace tessera::planner::internal
