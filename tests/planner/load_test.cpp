#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/codelets/work_split.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/internal/slowest_worker.hpp"
#include "tessera/planner/internal/tile_load.hpp"

// The planned load of the fullest cell and of the slowest worker, against drawn patterns.
namespace tessera::planner::internal {
namespace {

// A pattern of single elements: [row][column].
using Drawing = std::vector<std::vector<bool>>;

// Draws bands of rows that differ in density by a factor of up to four.
Drawing uneven_drawing(std::int64_t rows, std::int64_t cols, Random& random) {
  Drawing drawing(static_cast<std::size_t>(rows),
                  std::vector<bool>(static_cast<std::size_t>(cols)));
  double density = 0;
  for (std::size_t r = 0; r < drawing.size(); ++r) {
    if (r % 16 == 0) density = 0.05 + 0.15 * random.unit();
    for (std::size_t c = 0; c < drawing[r].size(); ++c) drawing[r][c] = random.unit() < density;
  }
  return drawing;
}

// Returns the statistics of a drawing, with a map of bins of `side` x `side`.
PatternStats stats_of(const Drawing& drawing, std::int64_t side) {
  const std::size_t rows = drawing.size(), cols = drawing.front().size();
  PatternStats stats{
      {1, 1}, std::vector<std::int32_t>(rows), std::vector<std::int32_t>(cols), {side, side}, {}};
  const std::int64_t width = stats.bin_cols() + 1;
  stats.before.assign(std::size_t((stats.bin_rows() + 1) * width), 0);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c) {
      if (!drawing[r][c]) continue;
      ++stats.row_counts[r];
      ++stats.col_counts[c];
      for (std::int64_t i = std::int64_t(r) / side + 1; i <= stats.bin_rows(); ++i)
        for (std::int64_t j = std::int64_t(c) / side + 1; j < width; ++j)
          ++stats.before[std::size_t(i * width + j)];
    }
  return stats;
}

std::int64_t fullest_cell(const Drawing& drawing, Dims parts) {
  std::int64_t fullest = 0;
  for (std::int64_t x = 0; x < parts.x; ++x)
    for (std::int64_t y = 0; y < parts.y; ++y) {
      const Range rows = share_of(std::ssize(drawing), 1, parts.x, x);
      const Range cols = share_of(std::ssize(drawing.front()), 1, parts.y, y);
      std::int64_t count = 0;
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t c = cols.begin; c < cols.end; ++c)
          count += drawing[std::size_t(r)][std::size_t(c)];
      fullest = std::max(fullest, count);
    }
  return fullest;
}

// The cuts lie inside of bins, so the map alone does not tell how much a cell holds.
TEST(BucketSize, HoldsTheFullestCellOfAKnownPattern) {
  Problem problem;
  problem.size = {1, 96, 96, 4};
  problem.density = 0.1;
  Options options;
  options.meta_info_bucket_oversize_proportion = 0;
  const device::Machine machine = device::machine_preset("gc200");
  const Candidate candidate = candidates(problem, machine, options).front();
  Random random(5);
  int exceeded = 0, cuts = 0;
  for (int round = 0; round < 20; ++round) {
    const Drawing drawing = uneven_drawing(96, 96, random);
    const PatternSize pattern = pattern_size(stats_of(drawing, 16), {1, 1});
    const Case c = make_case(problem, machine, options, candidate, &pattern);
    for (const Dims parts : {Dims{1, 5, 5, 1}, {1, 8, 5, 1}, {1, 5, 8, 1}, {1, 10, 10, 1}}) {
      ++cuts;
      exceeded += bucket_size(c, make_cut(c, parts)).blocks < fullest_cell(drawing, parts);
    }
  }
  EXPECT_EQ(exceeded, 0) << "of " << cuts;
}

// The bins of a small pattern are its blocks, so the map tells exactly what a cell holds, also
// where edges of cells cut blocks into the squares that tiles work with.
TEST(BucketSize, HasTheCountsOfTheFullestCellIfBinsAreBlocks) {
  Problem problem;
  problem.size = {1, 96, 96, 4};
  problem.block = {16, 16};
  problem.data_type = DataType::Float;
  problem.density = 0.3;
  Options options;
  options.meta_info_bucket_oversize_proportion = 0;
  const device::Machine machine = device::machine_preset("gc200");
  const Candidate candidate = candidates(problem, machine, options).front();
  ASSERT_EQ(candidate.block, (BlockShape{8, 8}));
  Random random(6);
  for (int round = 0; round < 20; ++round) {
    const Drawing blocks = uneven_drawing(6, 6, random);
    Drawing squares(12, std::vector<bool>(12));
    std::int64_t count = 0;
    for (std::size_t r = 0; r < 12; ++r)
      for (std::size_t c = 0; c < 12; ++c) count += squares[r][c] = blocks[r / 2][c / 2];
    PatternStats stats = stats_of(blocks, 1);
    stats.block = problem.block;
    const PatternSize pattern = pattern_size(stats, {8, 8});
    const Case c = make_case(problem, machine, options, candidate, &pattern);
    for (const Dims parts : {Dims{1, 1, 1, 1}, {1, 5, 1, 1}, {1, 3, 5, 1}, {1, 12, 12, 1}}) {
      const BucketSize bucket = bucket_size(c, make_cut(c, parts));
      EXPECT_EQ(bucket.fullest.nonzeros, double(fullest_cell(squares, parts)));
      EXPECT_EQ(bucket.fullest.mean, double(count) / double(parts.product()));
    }
  }
}

// Two patterns of 16 cells have the fullest cell of one with 32 of the same size.
TEST(BucketSize, OfSeveralPatternsIsThatOfTheFullestCellOfThemAll) {
  Problem problem;
  problem.size = {1, 64, 64, 4};
  problem.density = 0.1;
  const device::Machine machine = device::machine_preset("gc200");
  const auto size_of = [&](std::int64_t x, std::int64_t patterns, const PatternSize* known) {
    Problem wide = problem;
    wide.size.x = 16 * x;
    Options options;
    options.pattern_count = patterns;
    const Candidate candidate = candidates(wide, machine, options).front();
    const Case c = make_case(wide, machine, options, candidate, known);
    return bucket_size(c, make_cut(c, {1, x, 4, 1}));
  };
  const BucketSize one = size_of(4, 1, nullptr), two = size_of(4, 2, nullptr);
  const BucketSize large = size_of(8, 1, nullptr);
  EXPECT_GT(two.fullest.nonzeros, one.fullest.nonzeros);
  EXPECT_EQ(two.fullest.nonzeros, large.fullest.nonzeros);
  EXPECT_GE(size_of(4, 1000, nullptr).blocks, one.blocks + 4);
  Random random(7);
  const PatternSize known = pattern_size(stats_of(uneven_drawing(64, 64, random), 4), {1, 1});
  EXPECT_EQ(size_of(4, 1000, &known).blocks, size_of(4, 1, &known).blocks);
}

// A z piece of a full cell fills total / columns rows, and may begin and end inside a row: it has
// one row more. Words are linear in rows and blocks, so halving twice leaves that row alone.
TEST(BucketSize, HasOneRowMoreThanAPieceFills) {
  Problem problem;
  problem.size = {1, 32, 32, 64};
  problem.density = 1;
  Options options;
  options.meta_info_bucket_oversize_proportion = 0;
  options.bucket_confidence = 0;  // no room beyond the expected blocks
  device::Machine machine = device::machine_preset("gc200");
  machine.exchange_bytes_per_cycle = 1;  // buckets are rounded up to whole cycles of the exchange
  const Candidate candidate = candidates(problem, machine, options).front();
  const Case c = make_case(problem, machine, options, candidate, nullptr);
  const auto words = [&](std::int64_t z) {
    return bucket_size(c, make_cut(c, {1, 1, 1, z})).fwd_words;
  };
  const std::int64_t half = words(1) - words(2), quarter = words(2) - words(4);
  constexpr std::int64_t kWordsOfRow = 2;
  EXPECT_EQ(2 * quarter - half, kWordsOfRow);
}

// Returns the cycles of a record whose rows are divided between workers as the encoder does it.
std::int64_t drawn_cycles(const codelets::MatMulKernel& kernel, std::vector<std::int64_t> rows,
                          std::int64_t z, std::int64_t z_grain) {
  std::erase(rows, 0);
  std::sort(rows.begin(), rows.end(), std::greater<>());
  std::int64_t slowest = 0, start = 0;
  for (const codelets::WorkShare& share :
       codelets::split_between_workers(std::ssize(rows), z, kernel.workers, rows)) {
    const auto cycles = codelets::worker_cycles(kernel, share.cols.size() * z_grain);
    const std::int64_t nonzeros = std::accumulate(rows.begin() + share.rows.begin,
                                                  rows.begin() + share.rows.end, std::int64_t{0});
    slowest = std::max(slowest, cycles(share.rows.size(), nonzeros).value - cycles.start);
    start = cycles.start;
  }
  return kernel.workers * (start + slowest);
}

std::vector<std::int64_t> draw_rows(std::int64_t rows, std::int64_t cols, double density,
                                    Random& random) {
  std::vector<std::int64_t> counts(std::size_t(rows), 0);
  for (std::int64_t& count : counts)
    for (std::int64_t c = 0; c < cols; ++c) count += random.unit() < density;
  return counts;
}

struct Cell {
  std::int64_t rows, cols;
  double density;
};

TEST(WorkersCycles, AreThoseOfTheSlowestWorkerOfADrawnCell) {
  constexpr int kDraws = 60;
  constexpr std::int64_t kZ = 2, kGrain = 4;
  const codelets::MatMulKernel kernel{.method = codelets::Method::ElementFwd, .workers = 6};
  Random random(23);
  for (const Cell cell :
       {Cell{200, 40, 0.1}, {64, 64, 0.1}, {40, 300, 0.1}, {30, 200, 0.3}, {300, 20, 0.05}}) {
    std::int64_t sum = 0;
    for (int draw = 0; draw < kDraws; ++draw)
      sum +=
          drawn_cycles(kernel, draw_rows(cell.rows, cell.cols, cell.density, random), kZ, kGrain);
    const Scatter scatter{.places = cell.rows * cell.cols, .density = cell.density};
    const TileLoad load = cell_load({1, cell.rows, cell.cols, kZ},
                                    double(cell.rows * cell.cols) * cell.density, scatter);
    const std::int64_t planned = workers_cycles({kernel, load, 1, kZ, kGrain});
    const double drawn = double(sum) / kDraws;
    EXPECT_NEAR(double(planned) / drawn, 1, 0.04)
        << cell.rows << " x " << cell.cols << " at density " << cell.density;
  }
}

// Returns the mean of drawn_cycles() over drawings of a cell whose non-zeros are cut into `pieces`,
// row after row. The kernel walks the rows of a piece, or its columns.
double drawn_pieces(const codelets::MatMulKernel& kernel, const Cell& cell, std::int64_t pieces,
                    std::int64_t z, Random& random) {
  constexpr int kDraws = 40;
  const bool walks_columns = kernel.method == codelets::Method::ElementGradA;
  std::int64_t sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    for (std::int64_t row = 0; row < cell.rows; ++row)
      for (std::int64_t col = 0; col < cell.cols; ++col)
        if (random.unit() < cell.density) places.emplace_back(row, col);
    const std::int64_t start = kernel.workers * codelets::worker_cycles(kernel, z * 4).start;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      std::vector<std::int64_t> lines(std::size_t(walks_columns ? cell.cols : cell.rows), 0);
      const auto end = std::size_t((piece + 1) * std::ssize(places) / pieces);
      for (auto i = std::size_t(piece * std::ssize(places) / pieces); i < end; ++i)
        ++lines[std::size_t(walks_columns ? places[i].second : places[i].first)];
      sum += drawn_cycles(kernel, lines, z, 4) - start;
    }
    sum += start;
  }
  return double(sum) / kDraws;
}

TEST(WorkersCycles, AreThoseOfPiecesThatCrossRowsOrColumns) {
  Random random(29);
  for (const codelets::Method method :
       {codelets::Method::ElementFwd, codelets::Method::ElementGradA})
    for (const std::int64_t pieces : {1, 3, 7})
      for (const std::int64_t z : {2, 5})
        for (const Cell cell : {Cell{60, 124, 0.14}, {21, 68, 0.05}, {10, 300, 0.1}}) {
          const codelets::MatMulKernel kernel{.method = method, .workers = 6};
          const double drawn = drawn_pieces(kernel, cell, pieces, z, random);
          const Scatter scatter{.places = cell.rows * cell.cols, .density = cell.density};
          TileLoad load = cell_load({1, cell.rows, cell.cols, z},
                                    double(cell.rows * cell.cols) * cell.density, scatter);
          if (method == codelets::Method::ElementGradA) load = swapped(load);
          const std::int64_t planned = workers_cycles({kernel, load, pieces, z, 4});
          EXPECT_NEAR(double(planned) / drawn, 1, 0.2)
              << to_string(method) << ", " << cell.rows << " x " << cell.cols << ", " << pieces
              << " pieces, z " << z;
        }
}

// Returns the cycles of a gradient's record, whose non-zeros are divided evenly: a worker pays for
// every row that its share touches. Records list their fullest rows first.
std::int64_t drawn_gradient_cycles(const codelets::MatMulKernel& kernel,
                                   std::vector<std::int64_t> rows, std::int64_t z) {
  std::erase(rows, 0);
  std::sort(rows.begin(), rows.end(), std::greater<>());
  std::vector<std::size_t> row_of;  // [non-zeros]
  for (std::size_t r = 0; r < rows.size(); ++r)
    row_of.insert(row_of.end(), std::size_t(rows[r]), r);
  const auto cycles = codelets::worker_cycles(kernel, z);
  std::int64_t slowest = 0;
  for (std::int64_t w = 0; w < kernel.workers; ++w) {
    const Range share = share_of(std::ssize(row_of), 1, kernel.workers, w);
    if (share.size() == 0) continue;
    const auto touched =
        std::int64_t(row_of[std::size_t(share.end - 1)] - row_of[std::size_t(share.begin)] + 1);
    slowest = std::max(slowest, cycles(touched, share.size()).value - cycles.start);
  }
  return kernel.workers * (cycles.start + slowest);
}

TEST(WorkersCycles, OfGradientsPayForTheRowsOfTheLastWorker) {
  constexpr int kDraws = 60;
  constexpr std::int64_t kZ = 2, kGrain = 4;
  Random random(31);
  for (const codelets::Method method :
       {codelets::Method::ElementGradW, codelets::Method::BlockGradW})
    for (const Cell cell : {Cell{200, 40, 0.05}, {300, 20, 0.1}, {60, 64, 0.1}, {60, 300, 0.3}}) {
      const codelets::MatMulKernel kernel{.method = method, .workers = 6};
      std::int64_t sum = 0;
      for (int draw = 0; draw < kDraws; ++draw)
        sum += drawn_gradient_cycles(kernel, draw_rows(cell.rows, cell.cols, cell.density, random),
                                     kZ * kGrain);
      const Scatter scatter{.places = cell.rows * cell.cols, .density = cell.density};
      const TileLoad load = cell_load({1, cell.rows, cell.cols, kZ},
                                      double(cell.rows * cell.cols) * cell.density, scatter);
      const double drawn = double(sum) / kDraws;
      EXPECT_NEAR(double(workers_cycles({kernel, load, 1, kZ, kGrain})) / drawn, 1, 0.05)
          << to_string(method) << ", " << cell.rows << " x " << cell.cols << " at density "
          << cell.density;
    }
}

}  // namespace
}  // namespace tessera::planner::internal
