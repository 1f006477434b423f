#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Buckets : public testing::Test {
 protected:
  Outcome run_words(std::vector<std::string> words) {
    words.insert(words.begin(), {TESSERA_TOOL, "run"});
    return run(words);
  }
  // The words of a layer that keeps its buckets, and that of a file.
  std::vector<std::string> layer(std::vector<std::string> more) {
    more.insert(more.begin(), {"--density=0.3", "--batch-size=8", "--tiles-per-ipu=16",
                               R"(--plan-constraints={"useDense": false})"});
    return more;
  }
  std::string from_file() { return "--buckets=" + file_; }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "w.safetensors";
};

// The report without what depends on where the weights come from.
json figures_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  json report = json::parse(outcome.out);
  for (const char* key : {"source", "configuration", "notes"}) report.erase(key);
  return report;
}

TEST_F(Buckets, RunFromAFileWithTheSameReportAndTheSameResults) {
  for (const std::vector<std::string>& sizes :
       {std::vector<std::string>{"--input-size=48", "--output-size=32"},
        {"--input-size=45", "--output-size=30", "--block-size=4", "--data-type=float"},
        {"--input-size=48", "--output-size=32", "--groups=2", "--seed=5"},
        {"--input-size=48", "--output-size=32", "--single-phase=fwd"}}) {
    SCOPED_TRACE(testing::PrintToString(sizes));
    std::vector<std::string> words = layer(sizes);
    words.insert(words.end(),
                 {"--json", "--save-buckets=" + file_, "--output-dir=" + (folder_ / "encoded")});
    json encoded = figures_of(run_words(words));
    std::vector<std::string> again{from_file(), "--json", "--output-dir=" + (folder_ / "restored")};
    for (const std::string& word : sizes)
      if (word.rfind("--seed", 0) == 0) again.push_back(word);
    json restored = figures_of(run_words(again));
    EXPECT_EQ(restored, encoded);
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "encoded")) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("report", 0) == 0) continue;
      EXPECT_EQ(read_file(folder_ / "restored/" + name), read_file(entry.path().string())) << name;
    }
    std::filesystem::remove_all(folder_ / "encoded");
    std::filesystem::remove_all(folder_ / "restored");
  }
}

TEST_F(Buckets, KeepTheScaleOfAFileAndItsName) {
  const std::string matrix = folder_ / "w.mtx";
  sparse::Csr<float> weights = sparse::random_pattern(32, 48, {1, 1}, 0.3, 2);
  for (float& value : weights.values) value *= 1e-6F;
  io::write_mtx_file(matrix, weights);
  const Outcome saved =
      run_words({"--matrix=" + matrix, "--batch-size=8", "--tiles-per-ipu=16", "--quiet",
                 R"(--plan-constraints={"useDense": false})", "--save-buckets=" + file_});
  ASSERT_EQ(saved.exit, 0) << saved.err;
  const json report = json::parse(run_words({from_file(), "--json"}).out);
  EXPECT_GT(report["weight_scale"].get<double>(), 1);
  EXPECT_THAT(report["source"].get<std::string>(),
              HasSubstr("w.safetensors, encoded from " + matrix));
}

TEST_F(Buckets, AreRefusedWhereTheyDoNotBelong) {
  ASSERT_EQ(run_words(layer({"--input-size=48", "--output-size=32", "--quiet",
                             "--save-buckets=" + file_}))
                .exit,
            0);
  const auto refused = [&](std::vector<std::string> words, int exit) {
    const Outcome outcome = run_words(words);
    EXPECT_EQ(outcome.exit, exit) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(refused({from_file(), "--machine=bow"}, 2), HasSubstr("machine"));
  EXPECT_THAT(refused({from_file(), "--machine=host"}, 2), HasSubstr("--buckets"));
  EXPECT_THAT(refused({from_file(), "--static"}, 2), HasSubstr("--static"));
  EXPECT_THAT(refused({from_file(), "--batch-size=16"}, 2), HasSubstr("--batch-size"));
  EXPECT_THAT(refused({from_file(), "--density=0.5"}, 2), HasSubstr("--density"));
  EXPECT_THAT(refused({"--buckets=" + (folder_ / "none")}, 3), HasSubstr("none"));
  EXPECT_THAT(refused({"--input-size=48", "--output-size=32", "--density=0.3", "--tiles-per-ipu=16",
                       R"(--plan-constraints={"useDense": true})",
                       "--save-buckets=" + (folder_ / "d.safetensors")},
                      2),
              HasSubstr("useDense"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "d.safetensors"));
  std::string bytes = read_file(file_);
  bytes[bytes.size() / 2] = char(bytes[bytes.size() / 2] ^ 4);
  tessera::write_file(file_, bytes);
  EXPECT_THAT(refused({from_file()}, 3), HasSubstr("the checksum is wrong"));
  tessera::write_file(file_, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(refused({from_file()}, 3), HasSubstr("the file was cut"));
}

}  // namespace
}  // namespace tessera::test
