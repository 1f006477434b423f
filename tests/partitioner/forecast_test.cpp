#include "tessera/partitioner/forecast.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/partitioner/bucket_checks.hpp"

namespace tessera::partitioner {
namespace {

constexpr int kPatterns = 300;
constexpr std::uint64_t kForecastSeed = 20261121;

struct Layer {
  std::int64_t rows = 128, cols = 96;  // elements
  BlockShape block;
  Dims splits;
  double density = 0.1;
  bool separate_grad_a = false;
};

// One worker, so that what a bucket takes is what is counted for it.
TileGrid grid_of(const Layer& layer) {
  TileGrid grid;
  grid.size = {1, layer.rows, layer.cols, layer.splits.z};
  grid.block = layer.block;
  grid.splits = layer.splits;
  grid.workers = 1;
  grid.separate_grad_a = layer.separate_grad_a;
  return grid;
}

// Returns the needs of the fullest buckets of many random patterns.
std::vector<SpillStats> simulate(const Layer& layer) {
  std::vector<SpillStats> fullest;
  for (std::uint64_t i = 0; i < kPatterns; ++i) {
    const auto matrix = sparse::random_pattern(layer.rows, layer.cols, layer.block, layer.density,
                                               kForecastSeed + i);
    fullest.push_back(encode(matrix, test::with_room(grid_of(layer), matrix)).buckets->stats);
  }
  return fullest;
}

double share_that_spills(const std::vector<SpillStats>& fullest, const TileGrid& grid) {
  const auto spills = [&grid](const SpillStats& s) {
    return s.fullest_words > grid.meta_words || s.fullest_blocks > grid.blocks ||
           s.fullest_grad_a_words > grid.grad_a_words;
  };
  return double(std::count_if(fullest.begin(), fullest.end(), spills)) / double(fullest.size());
}

// Three deviations of the simulation, and five hundredths for the model.
void expect_close(double forecast, double seen, const std::string& where) {
  const double noise = std::sqrt(std::max(forecast * (1 - forecast), 0.003) / kPatterns);
  EXPECT_NEAR(forecast, seen, 3 * noise + 0.05) << where << ", seed " << kForecastSeed;
}

const Layer kLayers[] = {
    {128, 96, {1, 1}, {1, 1, 1, 1}, 0.1},  {128, 96, {1, 1}, {1, 4, 3, 1}, 0.1},
    {128, 96, {1, 1}, {1, 8, 6, 1}, 0.05}, {128, 96, {1, 1}, {1, 4, 2, 3}, 0.2},
    {130, 97, {1, 1}, {1, 4, 3, 1}, 0.1},  {128, 96, {4, 4}, {1, 4, 3, 1}, 0.3},
    {128, 96, {2, 3}, {1, 4, 2, 2}, 0.2},  {128, 96, {1, 1}, {1, 4, 3, 1}, 0.1, true},
    {256, 256, {1, 1}, {1, 8, 8, 1}, 0.02}};

// Capacities from where everything spills to where nothing does; once words are the narrow room,
// once blocks, once separate GradA words.
TEST(SpillForecast, AgreesWithSimulation) {
  int in_between = 0;
  for (const Layer& layer : kLayers) {
    const auto fullest = simulate(layer);
    const SpillStats& typical = fullest.front();
    for (const int narrow : {0, 1, 2})
      for (double factor = 0.8; factor < 1.3; factor += 0.04) {
        if (narrow == 2 && !layer.separate_grad_a) continue;
        TileGrid grid = grid_of(layer);
        const auto room = [&](std::int64_t n, bool is_narrow) {
          return is_narrow ? std::int64_t(double(n) * factor) : 10 * n;
        };
        grid.meta_words = room(typical.fullest_words, narrow == 0);
        grid.blocks = room(typical.fullest_blocks, narrow == 1);
        grid.grad_a_words =
            layer.separate_grad_a ? room(typical.fullest_grad_a_words, narrow == 2) : 0;
        const double seen = share_that_spills(fullest, grid);
        in_between += seen > 0.1 && seen < 0.9;
        expect_close(
            spill_probability(grid, layer.density), seen,
            testing::PrintToString(std::tuple(layer.rows, layer.block.rows, narrow, factor)));
      }
  }
  EXPECT_GT(in_between, 10);
}

TEST(SpillForecast, IsCertainAtTheEnds) {
  TileGrid grid = grid_of(kLayers[1]);
  grid.meta_words = 16, grid.blocks = 1;
  EXPECT_EQ(spill_probability(grid, 0.0), 0.0);
  EXPECT_EQ(spill_probability(grid, 0.5), 1.0);
  // A full matrix has no chance left in it: 32 rows of 32 columns, a header, a worker, an end.
  grid.blocks = 32 * 32;
  grid.meta_words = 9 + 5 + 32 * 34 + 1;
  EXPECT_EQ(spill_probability(grid, 1.0), 0.0);
  --grid.meta_words;
  EXPECT_EQ(spill_probability(grid, 1.0), 1.0);
  EXPECT_THROW(spill_probability(grid, 1.5), Error);
  EXPECT_THROW(spill_probability(grid, std::nan("")), Error);
  EXPECT_THROW(capacity_factor_for(grid, 0.5, 0), Error);
}

TEST(CapacityFactorFor, IsTheLeastThatKeepsTheWantedProbability) {
  for (const Layer& layer : kLayers)
    for (const double wanted : {0.5, 0.1, 1e-3}) {
      TileGrid grid = grid_of(layer);
      grid.meta_words = 200, grid.blocks = 100;
      grid.grad_a_words = layer.separate_grad_a ? 300 : 0;
      const double factor = capacity_factor_for(grid, layer.density, wanted);
      EXPECT_LE(spill_probability(with_capacity(grid, factor), layer.density), wanted);
      EXPECT_GT(spill_probability(with_capacity(grid, factor - 0.01), layer.density), wanted);
    }
}

// 1 % wanted: among 300 patterns some may spill, ten would be a chance of one in a thousand.
TEST(CapacityFactorFor, KeepsItsPromiseInSimulation) {
  for (const Layer& layer : kLayers) {
    TileGrid grid = grid_of(layer);
    grid.meta_words = 200, grid.blocks = 150;
    grid.grad_a_words = layer.separate_grad_a ? 300 : 0;
    grid = with_capacity(grid, capacity_factor_for(grid, layer.density, 0.01));
    EXPECT_LT(share_that_spills(simulate(layer), grid), 10.0 / kPatterns);
  }
}

}  // namespace
}  // namespace tessera::partitioner
