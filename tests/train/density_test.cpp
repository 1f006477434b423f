#include "tessera/train/rewire/density.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>

#include "tessera/tests/support/message_of.hpp"

namespace tessera::train {
namespace {

using test::refusal;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<LayerSize> layers_of(const std::vector<std::int64_t>& widths, BlockShape block = {}) {
  std::vector<LayerSize> layers;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    layers.push_back({widths[i + 1], widths[i], block});
  return layers;
}

std::int64_t sum_of(const std::vector<std::int64_t>& blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), std::int64_t(0));
}

template <class T>
std::vector<T> numbers_in(std::string text, char separator) {
  std::replace(text.begin(), text.end(), separator, ' ');
  std::istringstream in(text);
  std::vector<T> numbers;
  for (T n; in >> n;) numbers.push_back(n);
  return numbers;
}

// A row of tests/data/erk_vectors.tsv: widths, density, densities of layers, their non-zeros
// rounded layer by layer, the sum of those, and the sum that is meant.
TEST(ErdosRenyi, HasTheDensitiesOfTheTableAndTheSumExactly) {
  std::ifstream file(TESSERA_SOURCE_DIR "/tests/data/erk_vectors.tsv");
  std::string line;
  std::getline(file, line);
  int rows = 0;
  for (; std::getline(file, line); ++rows) {
    SCOPED_TRACE(line);
    std::istringstream cells(line);
    std::string widths, density, densities, blocks, rounded_sum, sum;
    for (std::string* cell : {&widths, &density, &densities, &blocks, &rounded_sum, &sum})
      std::getline(cells, *cell, '\t');
    const auto layers = layers_of(numbers_in<std::int64_t>(widths, '-'));
    const auto made = erdos_renyi_densities(layers, std::stod(density));
    const auto wanted = numbers_in<double>(densities, ' ');
    ASSERT_EQ(made.size(), wanted.size());
    for (std::size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], wanted[i], 6e-7);
    const auto stored = blocks_per_layer(layers, std::stod(density), Distribution::ErdosRenyi);
    EXPECT_EQ(sum_of(stored), std::stoll(sum));
    const auto rounded = numbers_in<std::int64_t>(blocks, ' ');
    // The table rounds the total up layer by layer, so it may have a block more for each layer.
    for (std::size_t i = 0; i < stored.size(); ++i)
      EXPECT_LE(std::abs(stored[i] - rounded[i]), std::ssize(stored));
  }
  EXPECT_EQ(rows, 30);
}

TEST(ErdosRenyi, GivesTheFractionsOfTheExampleInTheHeader) {
  EXPECT_THAT(blocks_per_layer(layers_of({784, 512, 512, 10}), 0.005, Distribution::ErdosRenyi),
              ElementsAre(1524, 1205, 614));
}

// The table has single weights. Blocks of 16 pad the last layer from 10 outputs to 16, which is no
// reason to store another share of it beside the others.
TEST(ErdosRenyi, KeepsTheRatiosOfTheTableWhateverTheBlocks) {
  const std::vector<std::int64_t> widths{784, 512, 512, 10};
  const std::vector<double> of_table{0.015195, 0.018384, 0.479811};  // at density 0.02
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{16, 16}, BlockShape{4, 8}}) {
    const auto made = erdos_renyi_densities(layers_of(widths, block), 0.02);
    for (std::size_t i = 1; i < made.size(); ++i)
      EXPECT_NEAR(made[i] / made[0], of_table[i] / of_table[0], 1e-3 * of_table[i] / of_table[0]);
  }
}

TEST(ErdosRenyi, GivesEqualLayersTheSameAndWhatIsLeftToTheFirst) {
  for (const std::size_t count : {1, 3, 12})
    for (double density = 0.013; density < 1; density += 0.017) {
      const std::vector<LayerSize> layers(count, {10, 12, {}});
      const auto blocks = blocks_per_layer(layers, density, Distribution::ErdosRenyi);
      EXPECT_EQ(sum_of(blocks), std::llround(density * 120 * double(count)));
      EXPECT_TRUE(std::is_sorted(blocks.rbegin(), blocks.rend()));
      EXPECT_LE(blocks.front() - blocks.back(), 1);
    }
}

TEST(ErdosRenyi, IsDenseEverywhereAtDensityOne) {
  EXPECT_THAT(blocks_per_layer(layers_of({6, 5, 4}), 1, Distribution::ErdosRenyi),
              ElementsAre(30, 20));
}

TEST(Uniform, KeepsTheLastLayerDenseButNotASingleOne) {
  EXPECT_THAT(blocks_per_layer(layers_of({784, 1024, 10}), 0.1, Distribution::Uniform),
              ElementsAre(80282, 10240));
  EXPECT_THAT(blocks_per_layer(layers_of({784, 1024}), 0.1, Distribution::Uniform),
              ElementsAre(80282));
}

TEST(BlocksPerLayer, CountsBlocksThatReachBeyondTheLayer) {
  const auto layers = layers_of({784, 1024, 10}, {16, 16});
  EXPECT_EQ(layers[1].blocks(), 64);
  EXPECT_THAT(blocks_per_layer(layers, 0.1, Distribution::Uniform), ElementsAre(314, 64));
  EXPECT_EQ(sum_of(blocks_per_layer(layers, 0.1, Distribution::ErdosRenyi)), 320);
}

TEST(BlocksPerLayer, NamesTheLayerWithoutABlockAndADensityThatWorks) {
  const auto layers = layers_of({100, 100, 3});
  for (const auto way : {Distribution::Uniform, Distribution::ErdosRenyi}) {
    const std::string message = refusal([&] { blocks_per_layer(layers, 1e-5, way); });
    EXPECT_THAT(message, AllOf(HasSubstr("layer "), HasSubstr(" has no block; density ")));
    const double works = std::stod(message.substr(message.find("; density ") + 10));
    EXPECT_NO_THROW(blocks_per_layer(layers, works, way)) << message;
    EXPECT_THROW(blocks_per_layer(layers, 0.98 * works, way), Error) << message;
  }
}

TEST(BlocksPerLayer, RefusesDensitiesOutsideTheirRangeAndEmptyLayers) {
  const auto layers = layers_of({4, 4});
  for (const double bad : {0.0, -0.1, 1.001, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THAT(refusal([&] { blocks_per_layer(layers, bad, Distribution::Uniform); }),
                HasSubstr("above 0 and at most 1"));
  EXPECT_THAT(refusal([&] { blocks_per_layer({}, 0.1, Distribution::Uniform); }),
              HasSubstr("no layers"));
  EXPECT_THAT(refusal([&] { blocks_per_layer(layers_of({4, 0}), 0.1, Distribution::Uniform); }),
              HasSubstr("layer 1 is 0 x 4"));
}

}  // namespace
}  // namespace tessera::train
