#include "tessera/planner/internal/static_expected.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/static_cycles.hpp"

namespace tessera::planner::internal {
namespace {

// Returns one standard deviation of how many of n places are taken, rounded up.
double deviation(double probability, std::int64_t n) {
  return std::ceil(std::sqrt(probability * (1 - probability) * double(n)));
}

// Returns the number of n places that are taken, with one standard deviation more.
std::int64_t expected_count(double probability, std::int64_t n) {
  return std::min(n, std::int64_t(std::ceil(probability * double(n) + deviation(probability, n))));
}

double at_least_one(double density, std::int64_t places) {
  return 1 - std::pow(1 - density, double(places));
}

// The fullest tile of a cut, in block rows and block columns.
struct ExpectedTile {
  std::int64_t blocks = 0;
  std::int64_t columns = 0, used_columns = 0, used_rows = 0;
  std::int64_t depth = 1;  // tiles that have sums of the same row
};

ExpectedTile fullest_tile(const StaticCounts& counts, const StaticBands& bands,
                          std::int64_t asked_bands, const std::vector<std::int64_t>& tiles) {
  std::size_t fullest = 0;
  const auto load = [&](std::size_t b) { return double(bands.blocks[b]) / double(tiles[b]); };
  for (std::size_t b = 1; b < tiles.size(); ++b)
    if (load(b) > load(fullest)) fullest = b;
  const std::int64_t blocks = bands.blocks[fullest], width = bands.width(fullest);
  const double density = counts.density();
  ExpectedTile tile{.blocks = ceil_div(blocks, tiles[fullest]), .columns = width};
  const std::int64_t rows = ceil_div(counts.usual_rows, tiles[fullest]);
  // A tile with less than a row uses a part of the columns.
  if (rows == 1)
    tile.columns =
        std::min(std::int64_t(std::ceil(double(blocks) / density)), counts.usual_columns);
  const double row_used = at_least_one(density, tile.columns);
  tile.used_rows = expected_count(row_used, rows);
  tile.used_columns = expected_count(at_least_one(density, rows), tile.columns);
  tile.depth =
      std::int64_t(std::ceil((row_used * double(asked_bands) + deviation(row_used, asked_bands)) *
                             double(width) / double(tile.columns)));
  return tile;
}

// Kernels address columns of a band in bytes, or for blocks in units of 8 bytes; the number of
// words of a kernel is counted without those of the blocks, as PopLibs counts it.
bool fits_words(const StaticCase& c, const StaticBands& bands, const ExpectedTile& tile,
                std::int64_t columns) {
  constexpr std::int64_t kMostOfWord = 65535, kOffsetUnit = 8;
  const BlockShape block = c.problem.block;
  const bool elements = block.is_element();
  const std::int64_t unit = elements ? 1 : kOffsetUnit * block.cols;
  const std::int64_t words = elements ? 6 * c.machine.workers + tile.used_rows + 1
                                      : 2 * c.machine.workers + 2 * tile.used_rows + 1;
  return bands.widest * block.cols * columns * c.data_bytes() <= kMostOfWord * unit &&
         words <= kMostOfWord;
}

std::int64_t kernel_cycles(const StaticCase& c, const ExpectedTile& tile, std::int64_t columns) {
  const codelets::StaticKernel kernel{c.problem.block, c.problem.data_type};
  const std::int64_t workers = c.machine.workers;
  const std::int64_t row_blocks = ceil_div(tile.blocks, tile.used_rows);
  const bool elements = c.problem.block.is_element();
  const std::int64_t rows = elements ? ceil_div(tile.used_rows, workers) : tile.used_rows;
  const std::int64_t z = elements ? columns : ceil_div(columns, workers);
  const Cycles worker = codelets::static_worker_cycles(kernel, z)(rows, rows * row_blocks);
  const Cycles supervisor = codelets::static_supervisor_cycles(kernel)(rows, rows * row_blocks);
  const std::int64_t sums = tile.used_rows * columns * c.problem.block.rows * c.data_bytes();
  return supervisor.value + workers * worker.value +
         codelets::static_zero_cycles(kernel, sums, workers).value;
}

StaticPrice price_of(const StaticCase& c, const ExpectedTile& tile, std::int64_t columns,
                     bool one_part) {
  const BlockShape block = c.problem.block;
  const std::int64_t width = c.machine.exchange_bytes_per_cycle, bytes = c.data_bytes();
  const std::int64_t operand = columns * tile.used_columns * block.cols * bytes;
  const std::int64_t values = tile.blocks * block.area() * bytes;
  const std::int64_t elements = tile.used_rows * columns * block.rows, sums = elements * bytes;
  const std::int64_t others = ceil_div(sums * (tile.depth - 1), tile.depth);
  const std::int64_t multiply = operand + values + sums;
  // Neighbours receive together what both use; fewer used columns leave less to receive together.
  const double bias = double(tile.columns) / double(tile.used_columns);
  const Cycles reduce = codelets::strided_reduce_cycles(ceil_div(elements, tile.depth), tile.depth,
                                                        c.problem.data_type, c.machine.workers);
  const std::int64_t results = c.problem.size.x * c.columns() * bytes;
  StaticPrice price;
  const auto add = [&price](Term term, std::int64_t cycles, std::int64_t temp) {
    price.terms.push_back({term, Cycles(cycles), Bytes(temp)});
    price.cycles += cycles;
    price.temp = std::max(price.temp, temp);
  };
  add(Term::ExchangeOperands, std::int64_t(double(ceil_div(operand, 2 * width)) * bias), operand);
  add(Term::ExchangeAlongZ, one_part ? 0 : ceil_div(values, width), operand + values);
  add(Term::Multiply, kernel_cycles(c, tile, columns), multiply);
  add(Term::ExchangeSums, ceil_div(others, width), others + sums);
  add(Term::ReduceSums, reduce.value, others + sums);
  add(Term::ArrangeResult, ceil_div(results, c.machine.tiles), 0);
  return price;
}

}  // namespace

std::optional<StaticPrice> expected_price(const StaticCase& c, const StaticBands& bands,
                                          std::int64_t asked_bands, bool one_part,
                                          const StaticShare& share) {
  const std::vector<std::int64_t> tiles = tiles_of_bands(bands, share.tiles, tile_grain(c.machine));
  if (tiles.empty()) return std::nullopt;
  const ExpectedTile tile = fullest_tile(c.counts, bands, asked_bands, tiles);
  if (!fits_words(c, bands, tile, share.columns)) return std::nullopt;
  return price_of(c, tile, share.columns, one_part);
}

}  // namespace tessera::planner::internal
