#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/shared_data.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

// Every seventh combination runs: seven and the twelve combinations of a matrix have no common
// factor, so over twelve matrices each of them occurs.
constexpr std::size_t kEvery = 7;

std::vector<fs::path> matrices(const fs::path& shared) {
  std::vector<fs::path> found;
  for (const char* folder : {"dlmc", "mediapipe", "mtx", "swin"})
    for (const auto& entry : fs::recursive_directory_iterator(shared / "data" / folder)) {
      const std::string ending = entry.path().extension();
      if (ending == ".smtx" || ending == ".mtx") found.push_back(entry.path());
    }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(RealData, EveryMatrixPassesAllPhasesAtSomeBatchTileCountAndType) {
  TESSERA_NEED_SHARED(shared);
  std::size_t combination = 0, ran = 0;
  for (const fs::path& path : matrices(shared)) {
    if (path.filename() == "young1c.mtx") continue;  // complex: see below
    for (const char* batch : {"1", "4", "37"})
      for (const char* tiles : {"24", "1472"})
        for (const char* type : {"float", "half"}) {
          if (combination++ % kEvery != 0) continue;
          ++ran;
          const Outcome outcome =
              run({TESSERA_SPARSE_FC_LAYER, "--matrix", path.string(), "--single-phase", "all",
                   "--batch-size", batch, "--tiles-per-ipu", tiles, "--data-type", type});
          EXPECT_EQ(outcome.exit, 0) << path.filename() << " batch " << batch << ", " << tiles
                                     << " tiles, " << type << ": " << outcome.err << outcome.out;
        }
  }
  EXPECT_GE(ran, 34u * 12 / kEvery);
}

// Sides of a Matrix Market file: the first line that is no comment.
std::pair<std::int64_t, std::int64_t> sides(const fs::path& path) {
  std::istringstream text(read_file(path.string()));
  std::string line;
  while (std::getline(text, line) && line.starts_with('%')) continue;
  std::istringstream numbers(line);
  std::pair<std::int64_t, std::int64_t> result;
  numbers >> result.first >> result.second;
  return result;
}

void expect_pass_in_blocks(const fs::path& path, const std::string& block) {
  for (const char* type : {"float", "half"}) {
    const Outcome outcome =
        run({TESSERA_SPARSE_FC_LAYER, "--matrix", path.string(), "--batch-size", "5",
             "--tiles-per-ipu", "96", "--block-size", block, "--data-type", type});
    EXPECT_EQ(outcome.exit, 0) << path.filename() << " in blocks of " << block << ", " << type
                               << ": " << outcome.err << outcome.out;
    EXPECT_THAT(outcome.out, testing::HasSubstr(block + "x" + block + " blocks of"));
  }
}

TEST(RealData, TheLayerOfTheDemoPassesInBlocks) {
  const fs::path path = fs::path(TESSERA_SOURCE_DIR) / "data" / "face_conv2d_24.mtx";
  ASSERT_EQ(sides(path), std::pair(std::int64_t{384}, std::int64_t{96}));
  for (const char* block : {"4", "16"}) expect_pass_in_blocks(path, block);
}

TEST(RealData, EveryMatrixPassesInBlocksWhetherTheyDivideItOrNot) {
  TESSERA_NEED_SHARED(shared);
  int whole = 0, padded = 0;
  for (const fs::path& path : matrices(shared)) {
    if (path.extension() != ".mtx" || path.filename() == "young1c.mtx") continue;
    const auto [rows, cols] = sides(path);
    for (const int block : {4, 16}) {
      ++(rows % block == 0 && cols % block == 0 ? whole : padded);
      expect_pass_in_blocks(path, std::to_string(block));
    }
  }
  EXPECT_GE(whole, 13);
  EXPECT_GE(padded, 5);
}

TEST(RealData, ComplexValuesAreRefused) {
  TESSERA_NEED_SHARED(shared);
  const Outcome outcome = run(
      {TESSERA_SPARSE_FC_LAYER, "--matrix", (shared / "data" / "mtx" / "young1c.mtx").string()});
  EXPECT_EQ(outcome.exit, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, testing::HasSubstr("complex"));
}

}  // namespace
}  // namespace tessera::test
