#include "tessera/host/cells.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"

namespace tessera::host {
namespace {

constexpr std::int64_t kVector = 16;  // floats of the widest vectors: panels are whole ones

constexpr std::int64_t kMostColumns = 64;  // of a panel of elements

// A panel of an operand of elements is copied if each of its rows is read so often: below, the copy
// takes longer than reading rows that are far apart. Sapphire Rapids, one thread, both changes of
// cells: 10 x 1024, density 0.01, z 128: 0.04 of the time; 128 x 784 at 0.1: 0.65; 768 x 3072 at
// 0.01: 0.63; 4096 x 4096 at 0.1, z 256: 0.97.
constexpr std::int64_t kFewestCopiedReads = 8;

bool pays_copy(const HostProblem& problem) {
  return problem.blocks >= kFewestCopiedReads * problem.size.y;
}

// Vectors that overlap, or begin between cache lines, cost more than a copy of S and of the results
// if S is read so often. Zen 5, one thread, by the time of vectors that overlap: 768 x 3072 at 0.1
// (77 reads), 3 to 60 columns 0.46 to 0.82, 100 columns 0.92; 512 x 512 at 0.05 (26), 50 columns
// 0.85; 2048 x 5632 at 0.01 (20), 10 columns 1.11; 3072 x 768 at 0.01 (8 values a row), 50 columns
// 1.07. With vectors of 32 bytes 512 x 512 at 0.05 1.09, and at 0.1 0.94 to 1.0.
bool pays_whole_vectors(const HostProblem& problem, const host::HostCpu& cpu) {
  constexpr std::int64_t kReads = 24, kReadsOfNarrow = 64, kValuesOfRow = 8;
  const std::int64_t reads = has_narrow_vectors(cpu) ? kReadsOfNarrow : kReads;
  return problem.blocks >= std::max(reads * problem.size.y, kValuesOfRow * problem.size.x);
}

// Wider panels of elements keep more sums in flight and read fewer words and values for each
// product, but the rows of their cells are shorter, so they need denser matrices. Sapphire Rapids,
// 4096 x 4096, density 0.25, z 1024: 1.08 times the rate of 64 columns; with ten non-zeros in a row
// of a cell there is no gain.
constexpr std::int64_t kWideColumns = 96;
constexpr double kFewestInWideRow = 20;

// Returns the width of panels of equal width: none is then much narrower than the others.
std::int64_t panel_width(std::int64_t z, std::int64_t most) {
  if (z <= most) return std::max<std::int64_t>(z, 1);
  return round_up(ceil_div(z, ceil_div(z, most)), kVector);
}

// Returns the floats of a vector.
std::int64_t lanes_of(const host::HostCpu& cpu) {
  return cpu.vector.value / std::int64_t{sizeof(float)};
}

// Returns `rows` in whole blocks, at most those that the layer has.
std::int64_t whole_blocks(std::int64_t rows, std::int64_t block, std::int64_t size) {
  return std::clamp(rows / block * block, block, std::max(block, round_up(size, block)));
}

// Neighbouring rows of more bytes than this fall into one set of L1 and each into another page, so
// an operand of such rows is copied, in panels of so many columns.
constexpr std::int64_t kLongestRow = 2048, kCopiedColumns = 128;

// With vectors of 32 bytes or less a high block is added tile by tile, and its rows have to stay in
// L1 meanwhile: shorter rows are copied, too, if blocks read them so often, in panels of two tiles
// of three vectors.
constexpr std::int64_t kNarrowVector = 32, kTwoTiles = 96, kFewestTiledReads = 4;

// AMD Zen 3, one thread, density 0.1: blocks of 16, 1024 x 1024 at z 256 0.86 of the time and 2048
// x 5632 at z 512 0.71; blocks of 8, 768 x 3072 at z 512 0.79. Blocks of 4 gain nothing, and blocks
// of 16 that read each row half a time would have 1.35.
bool copies_rows(const HostProblem& problem, const host::HostCpu& cpu) {
  const std::int64_t bytes = problem.size.z * bytes_of(problem.type);
  if (bytes > kLongestRow) return true;
  if (cpu.vector.value > kNarrowVector || problem.block.rows < 8) return false;
  if (problem.block.rows < 16) return bytes == kLongestRow;
  return bytes >= kLongestRow / 2 &&
         problem.blocks * problem.block.cols >= kFewestTiledReads * problem.size.y;
}

// Processors with so large a second-level cache have a slow third-level cache. There an operand
// that does not fit is copied, too, in panels that leave room for the rest, if each copied row is
// read often enough. Sapphire Rapids, 4096 x 4096, z 256, density 0.1: blocks of 4 run at 1.9 and
// of 16 at 1.25 times the rate. Blocks of 16 at 0.05 gain nothing, and at 0.01 would have 0.57 of
// it.
constexpr std::int64_t kLargeL2 = 2 << 20, kFewestReads = 16;

// Returns the rows of a cell that has about as many values as words of 16 bits can count, because a
// batch of one waits for words and values.
std::int64_t counted_rows(double values_in_row) {
  constexpr double kCounted = 50'000;
  return static_cast<std::int64_t>(kCounted / std::max(values_in_row, 1.0));
}

// An input row serves all rows of a block, so it may be read from L3 or memory; and sums are read
// and written once for each block row of a cell. So cells have all of y, and panels are as wide as
// a quarter of a shared cache holds. Every cell takes some time, and one thread has nobody to
// share cells with (bench/results/avx512_turns.tsv).
HostCells block_cells(const HostProblem& problem, const host::HostCpu& cpu, int threads) {
  constexpr std::int64_t kFewestColumns = 64, kFewestUnits = 16, kTile = 48;
  const auto [g, x, y, z] = problem.size;
  const std::int64_t bytes = bytes_of(problem.type);
  const std::int64_t cache = cpu.l3.value > 0 ? cpu.l3.value / 4 : 2 * cpu.l2.value;
  const std::int64_t columns = cache / (std::max<std::int64_t>(y, 1) * bytes);
  HostCells cells;
  // Low blocks read their input rows more often, and leave more of the cache to values and sums.
  const bool is_high = problem.block.rows >= 16;
  const std::int64_t room = is_high ? 3 * cpu.l2.value / 4 : cpu.l2.value / 2;
  const std::int64_t kept = room / (std::max<std::int64_t>(y, 1) * bytes);
  const bool pays = problem.blocks * problem.block.cols >= kFewestReads * y;
  const bool fits = pays && cpu.l2.value >= kLargeL2 && kept >= kFewestColumns && kept < z;
  cells.pack = copies_rows(problem, cpu) || fits;
  const std::int64_t whole = is_high ? kTile : kFewestColumns;
  const std::int64_t usual =
      is_high && cpu.vector.value <= kNarrowVector ? kTwoTiles : kCopiedColumns;
  const std::int64_t copied = fits ? kept / whole * whole : usual;
  cells.z = panel_width(z, cells.pack ? copied : std::max(columns, kFewestColumns));
  cells.y = whole_blocks(y, problem.block.cols, y);
  const double in_row =
      double(problem.blocks * problem.block.area()) / double(std::max(x, std::int64_t{1}));
  const std::int64_t shared = ceil_div(x, kFewestUnits);
  const std::int64_t rows = threads == 1 ? std::max(shared, counted_rows(in_row)) : shared;
  cells.x = whole_blocks(std::min(cpu.l2.value / 4 / (cells.z * 4), rows), problem.block.rows, x);
  return cells;
}

// Returns the values of a row of R.
double own_in_row(const HostProblem& problem) {
  return double(problem.blocks) / double(std::max(problem.size.x, std::int64_t{1}));
}

// Returns the share of a row that these values of it take.
double density_of(const HostProblem& problem, double in_row) {
  return in_row / double(std::max(problem.size.y, std::int64_t{1}));
}

// Panels of elements, and the rows of S whose slice of a panel stays in the nearest cache that is
// large enough for rows of R to have some non-zeros there.
struct ElementSlices {
  std::int64_t columns = 0, rows = 0;
  bool in_l1 = false;  // false: in L2
};

ElementSlices element_slices(const HostProblem& problem, const host::HostCpu& cpu) {
  // With fewer non-zeros in a row of a cell, its sums and its end cost more than the non-zeros.
  constexpr double kFewestInRow = 8;
  const double density = density_of(problem, problem.blocks_in_row.value_or(own_in_row(problem)));
  // Elements in 16 bits are mostly widened in slices in L1 (widens()): those are slices of floats.
  const auto rows_in_l1 = [&](std::int64_t columns) {
    return 3 * cpu.l1_data.value / 4 / (columns * std::int64_t{sizeof(float)});
  };
  const bool wide = density * double(rows_in_l1(kWideColumns)) >= kFewestInWideRow;
  const std::int64_t width = panel_width(problem.size.z, wide ? kWideColumns : kMostColumns);
  // The rows do not depend on the vectors, because the order of sums follows from them.
  const std::int64_t columns = whole_vectors(width, kVector);
  const std::int64_t in_l1 = rows_in_l1(columns);
  const std::int64_t in_l2 = cpu.l2.value / 2 / (columns * bytes_of(problem.type));
  const auto enough = static_cast<std::int64_t>(kFewestInRow / std::max(density, 1e-6));
  // A size between these two would not fit in L1 and would still end rows of R often.
  const bool fits_l1 = in_l1 >= enough / 2;
  return {whole_vectors(width, lanes_of(cpu)), fits_l1 ? std::max(in_l1, enough) : in_l2, fits_l1};
}

HostCells element_cells(const HostProblem& problem, const host::HostCpu& cpu, int threads) {
  const auto [g, x, y, z] = problem.size;
  const ElementSlices slices = element_slices(problem, cpu);
  const double own = density_of(problem, own_in_row(problem));
  HostCells cells;
  cells.z = slices.columns;
  cells.y = whole_blocks(slices.rows, 1, y);
  const std::int64_t counted = counted_rows(own * double(cells.y));
  cells.pack = cells.z < z && pays_copy(problem);
  // With few cells along y the sums are rarely read again, and a copy would cost more.
  constexpr std::int64_t kFewCells = 4;
  cells.gather = kFewCells * cells.y < y && cells.z < z;
  // A slice of S in L2 serves all rows of a cell before the next slice takes its place. One thread
  // has nobody to share cells with, and would read each slice once for each. Several threads share
  // the cells of one panel after the other.
  constexpr std::int64_t kFewestParts = 8, kPartsOfThread = 2;
  const std::int64_t parts =
      threads == 1 ? 1 : std::max(kFewestParts, kPartsOfThread * std::int64_t{threads});
  const std::int64_t kept = cells.gather ? cpu.l2.value / 4 / (cells.z * 4) : x;
  cells.x = whole_blocks(std::min({kept, ceil_div(x, parts), counted}), 1, x);
  return cells;
}

// Intel Xeon (Sapphire Rapids), 1024 x 4096, half, by the time of products in 16 bits: blocks of 4
// and 8, 4 and 10 columns 0.49 to 0.88 (2.6 to 51 reads); 50 columns 0.79 to 0.93 (13 reads and
// more), 1.1 and 1.5 (5 and 3 reads). With AVX2 0.40 to 1.07, and 0.73 to 1.0 (1.3 at 6 reads).
bool widens_blocks(const HostProblem& problem, const host::HostCpu& cpu) {
  constexpr std::int64_t kFewColumns = 16, kReadsOfFew = 2, kReadsOfSome = 6;
  const std::int64_t reads = problem.size.z < kFewColumns ? kReadsOfFew : kReadsOfSome;
  const bool is_slow = problem.type == DataType::Half || !cpu.fast_pairs;
  return is_slow && problem.size.z <= kMostWideColumns &&
         problem.blocks * problem.block.cols >= reads * problem.size.y;
}

// The time is that of zeros where most rows of R have no value, and long rows take them faster.
// Sapphire Rapids, 512 columns, by the time of panels of 64: 2048 x 512 at 0.0002 0.54, at 0.0005
// 0.66, at 0.001 (a value in half of the rows) 0.84, at 0.002 1.1; 4096 columns of 4096 x 1024
// 0.52.
// Other columns than whole vectors stay, as one that is alone in the last panel has sums of its
// own, and so do layers with so many rows that their sums would take more than 16 MiB.
constexpr std::int64_t kClearedColumns = 512, kMostClearedRows = 8192;

bool clears_most_rows(const HostProblem& problem, std::int64_t z) {
  return problem.block.is_element() && problem.type == DataType::Float && z % kVector == 0 &&
         problem.size.x <= kMostClearedRows && 2 * problem.blocks <= problem.size.x;
}

}  // namespace

// One column has a kernel of its own, and fewer than four take as long as four.
std::int64_t whole_vectors(std::int64_t columns, std::int64_t lanes) {
  constexpr std::int64_t kFewest = 4;
  if (columns <= 1 || lanes <= kFewest) return columns;
  if (columns >= lanes) return round_up(columns, lanes);
  std::int64_t shorter = kFewest;
  while (shorter < columns) shorter *= 2;
  return shorter;
}

HostCells product_cells(const HostProblem& problem, const host::HostCpu& cpu, int threads) {
  return problem.block.is_element() ? element_cells(problem, cpu, threads)
                                    : block_cells(problem, cpu, threads);
}

bool has_narrow_vectors(const host::HostCpu& cpu) { return cpu.vector.value <= kNarrowVector; }

bool widens(const HostProblem& problem, const host::HostCpu& cpu) {
  // Many columns cost as much to widen as some products. AMD Zen 3, half, 512 x 512 by the time of
  // products in 16 bits: 5 reads, z 128 1.57, 15 reads, z 64 1.08; one column 0.33. Slices in L2
  // are read faster in 16 bits by vectors of 64 bytes. Zen 5, half, 768 x 3072: density 0.01, z 64
  // 1.65; slices in L1, at 0.3, z 16 0.75, z 64 0.79; one column at 0.1 0.33; at 0.01 (7.7 reads) z
  // 3 and 10 1.3 and 1.5.
  constexpr std::int64_t kFewColumns = 16, kReadsOfFew = 2, kReadsOfSome = 8, kReadsOfMany = 16;
  if (problem.type == DataType::Float) return false;
  if (!problem.block.is_element()) return widens_blocks(problem, cpu);
  const bool has_few = problem.size.z < kFewColumns;
  const bool is_cheap = problem.size.z == 1 || has_narrow_vectors(cpu);
  const std::int64_t few = is_cheap ? kReadsOfFew : kReadsOfSome;
  if (problem.blocks < (has_few ? few : kReadsOfMany) * problem.size.y) return false;
  return has_few || has_narrow_vectors(cpu) || element_slices(problem, cpu).in_l1;
}

// Zen 5, by the time of aligned rows, where they begin 16 bytes past a cache line: 768 x 3072 at
// 0.1, 8 to 64 columns, 1.18 to 1.52 in place and 1.08 to 1.13 with a copy; 2048 x 5632 at 0.01 (20
// reads), 64 columns, 1.49 in place.
bool copies_unaligned(const HostProblem& problem, const host::HostCpu& cpu) {
  constexpr std::int64_t kReads = 16, kReadsOfNarrow = 64;
  const std::int64_t reads = has_narrow_vectors(cpu) ? kReadsOfNarrow : kReads;
  return problem.block.is_element() && problem.blocks >= reads * problem.size.y;
}

// Zen 5, 512 columns in two panels: rows read 3 to 10 times 0.60 to 0.92 of the time, 20 times 0.96
// and 1.01; rows that are pages apart, read 16 times, 1.16.
bool reads_in_place(const HostProblem& problem, std::int64_t row_stride) {
  constexpr std::int64_t kFewUses = 16, kPage = 4096;
  return problem.block.is_element() && problem.blocks < kFewUses * problem.size.y &&
         row_stride * bytes_of(problem.type) < kPage;
}

// Panels of gradients have so many columns, or fewer where rows of R have so few elements that a
// slice of S which has enough of them for a row would fill the second-level cache. Zen 5, time by
// that of 256 columns: 1024 x 1024 at 1/64, z 4096, 0.91 to 0.97; 4096 x 1024 0.86 to 0.89; 2048 x
// 5632 at 0.01, z 512, 0.80 to 0.85 (vectors of 32 bytes 0.94, 1.0 and 0.87); rows of S that are
// read less than 16 times 1.06 to 1.12. Smaller second-level caches were not measured.
constexpr std::int64_t kGradientColumns = 256, kFewGradientColumns = 128;
constexpr double kVeryFewInRow = 16;

std::int64_t gradient_columns_of(const HostProblem& problem, const host::HostCpu& cpu) {
  constexpr std::int64_t kReads = 16, kSmallestL2 = 1 << 20;
  const auto [g, x, y, z] = problem.size;
  if (!problem.block.is_element() || cpu.l2.value < kSmallestL2 || z <= kGradientColumns ||
      problem.blocks < kReads * y)
    return kGradientColumns;
  const double rows = std::min(kVeryFewInRow / density_of(problem, own_in_row(problem)), double(y));
  const double bytes = rows * double(kGradientColumns * bytes_of(problem.type));
  return bytes > 0.75 * double(cpu.l2.value) ? kFewGradientColumns : kGradientColumns;
}

HostCells gradient_cells(const HostProblem& problem, const host::HostCpu& cpu) {
  const auto [g, x, y, z] = problem.size;
  HostCells cells;
  cells.z = panel_width(z, gradient_columns_of(problem, cpu));
  const std::int64_t row_bytes = cells.z * bytes_of(problem.type);
  // Rows of S for a block are read once for all its rows, so they may come from L3 or memory, and
  // with long rows of blocks they are fetched ahead. Rows of S for elements have to come from L2: a
  // quarter of it, or up to half where a row would have few elements in a slice. With very few, the
  // rows of dQ, which are read again for every slice, cost more than rows of S from L3. AMD Zen 3,
  // slices of 16 elements a row by such of 12 and of at most one and a half L2: 1024 x 1024 at
  // 1/64, z 4096: 0.92 of the time; 2048 x 2048 at 0.03, z 1024: 0.98.
  constexpr double kEnoughInRow = 48;
  const double density = double(problem.blocks) / std::max(double(x) * double(y), 1.0);
  const auto rows_for = [&](double in_row) {
    return static_cast<std::int64_t>(in_row / std::max(density, 1e-6));
  };
  const std::int64_t in_l2 = cpu.l2.value / row_bytes;
  const std::int64_t in_near = std::clamp(rows_for(kEnoughInRow), in_l2 / 4, in_l2 / 2);
  const std::int64_t in_far = std::min(rows_for(kVeryFewInRow), 2 * in_l2);
  const std::int64_t rows = problem.block.is_element() ? std::max(in_near, in_far) : y;
  cells.y = whole_blocks(rows, problem.block.cols, y);
  cells.x = whole_blocks(std::min(std::int64_t{256}, ceil_div(x, 8)), problem.block.rows, x);
  cells.pack = cells.z < z && !reads_in_place(problem, z);
  return cells;
}

codelets::PackedPositions packed_positions(std::int64_t rows, std::int64_t cols,
                                           std::int64_t values) {
  constexpr std::int64_t kBitsOfAByte = 8;
  const std::int64_t bits =
      rows * ceil_div(cols, codelets::kPackedChunk) * (codelets::kPackedChunk / kBitsOfAByte);
  const std::int64_t bytes = values + rows * ceil_div(cols, codelets::kPackedSegment);
  return bytes < bits ? codelets::PackedPositions::Bytes : codelets::PackedPositions::Bits;
}

HostColumns product_columns(const HostCells& cells, HostProblem problem, std::int64_t z,
                            const host::HostCpu& cpu) {
  if (!problem.block.is_element()) {
    constexpr int kAnyThreads = 1;  // the columns do not depend on it
    problem.size.z = z;
    const HostCells own = block_cells(problem, cpu, kAnyThreads);
    return {own.z, own.z, own.pack};
  }
  // The panels do not depend on the vectors either: a last one of one column adds up differently.
  const std::int64_t most = clears_most_rows(problem, z) ? kClearedColumns
                            : problem.size.z < kVector   ? kMostColumns
                                                         : whole_vectors(cells.z, kVector);
  const std::int64_t width = panel_width(z, most);
  HostColumns columns{width, std::max(width, cells.z)};
  columns.pack = width < z && pays_copy(problem);
  if (!pays_whole_vectors(problem, cpu)) return columns;
  columns.lanes = lanes_of(cpu);
  const std::int64_t last = z - (ceil_div(z, width) - 1) * width;
  columns.pack |= columns.computed(last) > last;
  columns.stride = std::max(columns.stride, columns.computed(width));
  return columns;
}

std::int64_t HostColumns::computed(std::int64_t columns) const {
  return whole_vectors(columns, lanes);
}

HostColumns turned_columns(std::int64_t z) {
  const std::int64_t width = panel_width(z, kMostColumns);
  return {width, width, true};
}

HostColumns gradient_columns(const HostCells& cells, std::int64_t z) {
  const std::int64_t width = panel_width(z, std::max(cells.z, kMostColumns));
  return {width, width, width < z};
}

}  // namespace tessera::host
