#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tessera/tests/fuzz/targets.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::fuzz {
namespace {

std::filesystem::path corpus() { return TESSERA_SOURCE_DIR "/tests/fuzz/corpus"; }

std::vector<std::string> inputs_of(const Target& target) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(corpus() / target.name))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

Input as_input(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, BreaksNoPromise) {
  const std::vector<std::string> paths = inputs_of(GetParam());
  EXPECT_FALSE(paths.empty()) << "tests/fuzz/corpus/" << GetParam().name;
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    EXPECT_NO_THROW(GetParam().run(as_input(test::read_file(path))));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, Corpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

#ifdef TESSERA_FUZZ_ALL
TEST(Folders, AreThoseOfTargets) {
  for (const auto& entry : std::filesystem::directory_iterator(corpus())) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(std::any_of(targets().begin(), targets().end(), [&](const Target& target) {
      return target.name == name;
    })) << name;
  }
}
#endif

TEST(Folders, HoldSmallFilesOnly) {
  constexpr std::uintmax_t kLargest = 16384;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus()))
    EXPECT_TRUE(!entry.is_regular_file() || entry.file_size() <= kLargest) << entry.path();
}

TEST(Targets, EndOnNoInputAndOnZeros) {
  for (const Target& target : targets()) {
    SCOPED_TRACE(target.name);
    EXPECT_NO_THROW(target.run({}));
    EXPECT_NO_THROW(target.run(as_input(std::string(64, '\0'))));
  }
}

}  // namespace
}  // namespace tessera::fuzz
