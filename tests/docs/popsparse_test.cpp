#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/tests/docs/page.hpp"
#include "tessera/tests/planner/product_plan.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

const std::string kPage = "docs/popsparse.md";

// The words of all headers, and the options that the manual names.
std::set<std::string> words_of_headers() {
  static const std::regex kWord("[A-Za-z_][A-Za-z_0-9]*");
  std::set<std::string> words;
  for (const char* folder : {"base", "sparse", "partitioner", "planner", "runtime", "host"})
    for (const auto& file : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(TESSERA_SOURCE_DIR) / folder)) {
      if (file.path().extension() != ".hpp") continue;
      std::ifstream in(file.path());
      const std::string text((std::istreambuf_iterator<char>(in)), {});
      for (std::sregex_iterator word(text.begin(), text.end(), kWord), end; word != end; ++word)
        words.insert(word->str());
    }
  return words;
}

// The identifiers that a cell names in code marks, without options of the command line.
std::vector<std::string> identifiers(const std::string& line) {
  static const std::regex kCode("`([A-Za-z_:]+)`");
  std::vector<std::string> found;
  for (std::sregex_iterator code(line.begin(), line.end(), kCode), end; code != end; ++code)
    found.push_back((*code)[1]);
  return found;
}

// The cells of the column "here" of the tables of names, with their code marks.
std::vector<std::string> cells_of_names() {
  std::istringstream page(page_text(kPage));
  std::vector<std::string> cells;
  bool names = false;
  for (std::string line; std::getline(page, line);) {
    if (line.empty()) names = false;
    if (names) {
      const std::size_t first = line.find('|', 1);
      cells.push_back(line.substr(first + 1, line.find('|', first + 1) - first - 1));
    }
    if (line.starts_with("| PopSparse | here |")) names = true;
  }
  return cells;
}

TEST(PopSparsePage, NamesOnlyWhatTheHeadersHave) {
  const std::set<std::string> words = words_of_headers();
  int names = 0;
  for (const std::string& cell : cells_of_names())
    for (const std::string& name : identifiers(cell)) {
      std::istringstream parts(std::regex_replace(name, std::regex("::"), " "));
      for (std::string part; parts >> part; ++names)
        EXPECT_TRUE(words.contains(part)) << name << ": no header has " << part;
    }
  EXPECT_GT(names, 40);
}

// An option of PopSparse with a value that is not its default, and what becomes of it here.
struct Case {
  std::string key, json;
  enum class Result { AnotherPlan, AnotherRun, Refused } result;
};

std::vector<Case> cases() {
  using enum Case::Result;
  return {
      {"availableMemoryProportion", R"({"availableMemoryProportion": 0.02})", AnotherPlan},
      {"metaInfoBucketOversizeProportion", R"({"metaInfoBucketOversizeProportion": 2})",
       AnotherPlan},
      {"doGradAPass", R"({"doGradAPass": true})", Refused},
      {"doGradWPass", R"({"doGradWPass": true})", Refused},
      {"partialsType", R"({"partialsType": "half"})", Refused},
      {"numBands", R"({"numBands": 2})", Refused},
      {"nSplit", R"({"nSplit": 2})", Refused},
      {"verboseLogging", R"({"verboseLogging": true})", Refused},
      {"enablePreprocessing", R"({"enablePreprocessing": false})", Refused},
      {"memoryCycleRatio", R"({"memoryCycleRatio": 0.5})", Refused},
      {"numberOfPass", R"({"numberOfPass": 2})", Refused},
      {"partitionMethod", R"({"partitionMethod": "block"})", Refused},
      {"sharedBuckets", R"({"sharedBuckets": false})", AnotherPlan},
      {"enableStructuredRearrangements", R"({"enableStructuredRearrangements": false})",
       AnotherPlan},
      {"partitioner.optimiseForSpeed", R"({"partitioner.optimiseForSpeed": false})", Refused},
      {"partitioner.useActualWorkerSplitCosts",
       R"({"partitioner.useActualWorkerSplitCosts": true})", Refused},
      {"partitioner.forceBucketSpills", R"({"partitioner.forceBucketSpills": true})", AnotherRun},
      {"planConstraints", R"({"planConstraints": {"partition": {"x": 3}}})", AnotherPlan},
      {"planConstraints", R"({"planConstraints": {"exchange": {"gradWExchangeBuckets": true}}})",
       AnotherPlan},
      {"planConstraints", R"({"planConstraints": {"useDense": true}})", AnotherPlan}};
}

// Layers that between them have every choice the options speak of.
std::vector<Problem> problems() {
  const Dims size{1, 512, 512, 256};
  return {{size, {1, 1}, 0.1, DataType::Half, DataType::Float, true, true},
          {size, {16, 16}, 0.1, DataType::Half, DataType::Float, true, true}};
}

bool gives_another_plan(const std::string& json) {
  const device::Machine machine = device::load_machine("gc200");
  const planner::Options usual = planner::sparse_options();
  const planner::Options options = planner::parse_options(json, kPage, usual);
  return std::ranges::any_of(problems(), [&](const Problem& problem) {
    const planner::PlanResult before = planner::plan(problem, machine, usual);
    const planner::PlanResult after = planner::plan(problem, machine, options);
    return before.status != after.status || before.plan != after.plan;
  });
}

// Returns what the tool prints of a small layer.
std::string run_of(const std::string& options) {
  const Outcome outcome =
      run({TESSERA_TOOLS_DIR "/sparse_fc_layer", "--input-size=64", "--output-size=64",
           "--density=0.2", "--tiles-per-ipu=16", "--plan-constraints={\"useDense\": false}",
           "--matmul-options=" + options});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  return outcome.out;
}

TEST(PopSparseOptions, EachGivesAnotherPlanOrRunOrIsRefusedWithTheReason) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.json);
    if (c.result == Case::Result::AnotherPlan) {
      EXPECT_TRUE(gives_another_plan(c.json));
      continue;
    }
    if (c.result == Case::Result::AnotherRun) {
      EXPECT_NE(run_of(c.json), run_of("{}"));
      continue;
    }
    try {
      planner::parse_options(c.json, kPage);
      ADD_FAILURE() << "it was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
      EXPECT_NE(std::string(error.what()).find(c.key), std::string::npos) << error.what();
    }
  }
}

// The options of sparseDenseMatMul.
TEST(PopSparseOptions, OfProductsGiveAnotherPlan) {
  MatMulProblem product{.m = 256, .k = 320, .n = 64, .density = 0.1};
  device::Machine machine = device::load_machine("gc200");
  machine.tiles = 64;
  const planner::Options usual = planner::sparse_options();
  const planner::MatMulPlan before = test::product_plan(product, machine, usual);
  for (const char* json :
       {R"({"availableMemoryProportion": 0.004})", R"({"metaInfoBucketOversizeProportion": 2})",
        R"({"sharedBuckets": true})", R"({"sharedBuckets": false})"}) {
    SCOPED_TRACE(json);
    const planner::Options options = planner::parse_options(json, kPage, usual);
    std::optional<planner::MatMulPlan> after;
    try {
      after = test::product_plan(product, machine, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::NoSolution);
    }
    const bool chooses = std::string(json).find("sharedBuckets") != std::string::npos;
    // Without the option the planner takes the cheaper one of the two.
    if (!chooses) {
      EXPECT_TRUE(!after || *after != before);
    } else {
      ASSERT_TRUE(after);
      EXPECT_EQ(after->layer.shared_buckets(), std::string(json).find("true") != std::string::npos);
    }
  }
  product.partials_type = DataType::Half;
  EXPECT_NE(test::product_plan(product, machine, usual), before);
}

TEST(PopSparseOptions, OfProductsGiveAnotherRun) {
  const auto run_of_product = [](std::vector<std::string> switches) {
    std::vector<std::string> words{TESSERA_TOOLS_DIR "/tessera",
                                   "matmul",
                                   "--m=64",
                                   "--k=48",
                                   "--n=8",
                                   "--density=0.2",
                                   "--tiles-per-ipu=16",
                                   "--plan-constraints={\"useDense\": false}"};
    words.insert(words.end(), switches.begin(), switches.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return outcome.out;
  };
  const std::string usual = run_of_product({});
  for (const char* option : {"--matmul-options={\"partitioner.forceBucketSpills\": true}",
                             "--matmul-options={\"partialsType\": \"half\"}", "--transpose-lhs",
                             "--transpose-rhs", "--dense-sparse"})
    EXPECT_NE(run_of_product({option}), usual) << option;
}

TEST(PopSparseOptions, AreAllOnThePage) {
  std::set<std::string> on_page, tried;
  for (const auto& row : table_rows(page_text(kPage), "option")) {
    std::istringstream keys(std::regex_replace(row[0], std::regex(","), " "));
    for (std::string key; keys >> key;) on_page.insert(key);
  }
  for (const Case& c : cases()) tried.insert(c.key);
  EXPECT_EQ(on_page, tried);
}

}  // namespace
}  // namespace tessera::test
