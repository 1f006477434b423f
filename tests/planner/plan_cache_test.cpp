#include "tessera/planner/plan_cache.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/planner/internal/plan_fields.hpp"
#include "tessera/planner/internal/store.hpp"
#include "tessera/tests/planner/recorded_plans.hpp"
#include "tessera/tests/support/forked.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::planner {
namespace {

using testing::HasSubstr;

Problem layer(std::int64_t batch = 16) {
  Problem p;
  p.size = {1, 64, 48, batch};
  p.density = 0.25;
  return p;
}

std::string text_of(const PlanResult& result) { return internal::to_json_object(result).dump(); }

void expect_answer(const PlanResult& given, const Problem& problem, const Options& options = {}) {
  EXPECT_EQ(text_of(given), text_of(plan(problem, device::machine_preset("gc200"), options)));
}

std::vector<std::string> files_in(const test::TemporaryFolder& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(PlanCache, PlansOnceAndAnswersFromMemoryAfterThat) {
  PlanCache cache;
  for (int i = 0; i < 3; ++i)
    expect_answer(cache.plan(layer(), device::machine_preset("gc200")), layer());
  EXPECT_EQ(cache.counts(), (PlanCacheCounts{2, 0, 1}));
}

TEST(PlanCache, KeepsTheReasonWhyThereIsNoPlan) {
  Options options;
  options.available_memory_proportion = 1e-6;
  PlanCache cache;
  for (int i = 0; i < 2; ++i) {
    const PlanResult result = cache.plan(layer(), device::machine_preset("gc200"), options);
    EXPECT_EQ(result.status, PlanStatus::NoPlan);
    EXPECT_THAT(result.reason, HasSubstr("availableMemoryProportion"));
  }
  EXPECT_EQ(cache.counts(), (PlanCacheCounts{1, 0, 1}));
}

TEST(PlanCache, PassesErrorsOnAndKeepsNoneOfThem) {
  Problem dense = layer();
  dense.density = 2;
  PlanCache cache;
  EXPECT_THROW(cache.plan(dense, device::machine_preset("gc200")), Error);
  Options pinned;
  pinned.constraints.x = 65;
  EXPECT_THROW(cache.plan(layer(), device::machine_preset("gc200"), pinned), Error);
  EXPECT_EQ(cache.counts(), PlanCacheCounts{});
}

PatternStats even_stats() {
  PatternStats stats;
  stats.row_counts.assign(64, 12);
  stats.col_counts.assign(48, 16);
  return stats;
}

// One request for each input that a key could forget.
TEST(PlanCache, TellsRequestsApartThatDifferInOneInput) {
  std::vector<Problem> problems;
  const auto with = [&](auto&& change) {
    Problem p = layer();
    p.size = {1, 64, 64, 16};
    change(p);
    problems.push_back(p);
  };
  with([](Problem&) {});
  with([](Problem& p) { p.size.g = 2; });
  with([](Problem& p) { p.size.x = 32; });
  with([](Problem& p) { p.size.y = 32; });
  with([](Problem& p) { p.size.z = 32; });
  with([](Problem& p) { p.block.rows = 4; });
  with([](Problem& p) { p.block.cols = 4; });
  with([](Problem& p) { p.density = 0.26; });
  with([](Problem& p) { p.data_type = DataType::Float; });
  with([](Problem& p) { p.grad_a = true; });
  with([](Problem& p) { p.grad_w = true; });
  with([](Problem& p) { p.block = {4, 4}; });
  with([](Problem& p) { p.block = {4, 4}, p.partials_type = DataType::Half; });
  PlanCache cache;
  for (const Problem& p : problems)
    expect_answer(cache.plan(p, device::machine_preset("gc200")), p);
  EXPECT_EQ(cache.counts(), (PlanCacheCounts{0, 0, std::ssize(problems)}));
}

TEST(PlanCache, TellsMachinesOptionsAndPatternsApart) {
  PlanCache cache;
  std::int64_t requests = 0;
  const auto ask = [&](const device::Machine& m, const Options& o, const PatternStats* s) {
    cache.plan(layer(), m, o, s);
    EXPECT_EQ(cache.counts().planned, ++requests);
  };
  ask(device::machine_preset("gc200"), {}, nullptr);
  device::Machine machine = device::machine_preset("gc200");
  machine.name = "mine";
  ask(machine, {}, nullptr);
  machine.sync = Cycles(601);
  ask(machine, {}, nullptr);
  Options options;
  options.poplibs_parity = true;
  ask(device::machine_preset("gc200"), options, nullptr);
  options.shared_buckets = false;
  ask(device::machine_preset("gc200"), options, nullptr);
  options.constraints.y = 1;
  ask(device::machine_preset("gc200"), options, nullptr);
  options.constraints.use_dense = false;
  ask(device::machine_preset("gc200"), options, nullptr);
  PatternStats stats = even_stats();
  ask(device::machine_preset("gc200"), {}, &stats);
  ++stats.row_counts[3], --stats.row_counts[4];
  ask(device::machine_preset("gc200"), {}, &stats);
  ++stats.col_counts[3], --stats.col_counts[4];
  ask(device::machine_preset("gc200"), {}, &stats);
}

TEST(PlanCache, ForgetsTheOldestAnswersWhenItsMemoryIsFull) {
  PlanCache cache({}, Bytes(40'000));
  for (std::int64_t batch = 1; batch <= 100; ++batch)
    cache.plan(layer(batch), device::machine_preset("gc200"));
  cache.plan(layer(100), device::machine_preset("gc200"));
  EXPECT_EQ(cache.counts(), (PlanCacheCounts{1, 0, 100}));
  expect_answer(cache.plan(layer(1), device::machine_preset("gc200")), layer(1));
  EXPECT_EQ(cache.counts(), (PlanCacheCounts{1, 0, 101}));
  PlanCache tiny({}, Bytes(1));
  for (int i = 0; i < 2; ++i)
    expect_answer(tiny.plan(layer(), device::machine_preset("gc200")), layer());
  EXPECT_EQ(tiny.counts(), (PlanCacheCounts{0, 0, 2}));
}

TEST(PlanCache, AnswersFromDiskInANewRun) {
  const test::TemporaryFolder folder;
  const PatternStats stats = even_stats();
  const std::string made = folder / "made" + "/below";
  PlanCache first(made);
  const std::string answer =
      text_of(first.plan(layer(), device::machine_preset("gc200"), {}, &stats));
  EXPECT_EQ(first.counts(), (PlanCacheCounts{0, 0, 1}));
  PlanCache second(made);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(text_of(second.plan(layer(), device::machine_preset("gc200"), {}, &stats)), answer);
  EXPECT_EQ(second.counts(), (PlanCacheCounts{1, 1, 0}));
}

TEST(PlanCache, GivesAllRecordedPlansBackFromDisk) {
  const test::TemporaryFolder folder;
  const std::vector<RecordedPlan> rows = read_recorded_plans();
  std::vector<std::string> answers;
  PlanCache first(folder.path().string()), second(folder.path().string());
  for (const RecordedPlan& row : rows)
    answers.push_back(
        text_of(first.plan(row.problem(), device::machine_preset("gc200"), parity_options())));
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(
        text_of(second.plan(rows[i].problem(), device::machine_preset("gc200"), parity_options())),
        answers[i])
        << rows[i].text("id");
  EXPECT_EQ(second.counts().planned, 0);
  EXPECT_EQ(second.counts().from_disk + second.counts().from_memory, std::ssize(rows));
}

// A folder with one answer, its file and what stands in it.
struct OneFile {
  test::TemporaryFolder folder;
  std::string path, text;

  OneFile() {
    PlanCache(folder.path().string()).plan(layer(), device::machine_preset("gc200"));
    path = files_in(folder).at(0);
    text = test::read_file(path);
  }
  // True when a file with this content is taken for an answer; else it is made new.
  bool believes(const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    PlanCache cache(folder.path().string());
    expect_answer(cache.plan(layer(), device::machine_preset("gc200")), layer());
    EXPECT_EQ(test::read_file(path), text) << "the file was put right";
    return cache.counts().planned == 0;
  }
};

TEST(PlanCache, TakesEveryDamagedFileForAbsentAndPutsItRight) {
  OneFile file;
  EXPECT_TRUE(file.believes(file.text));
  for (std::size_t length = 0; length < file.text.size(); length += 101)
    EXPECT_FALSE(file.believes(file.text.substr(0, length))) << length;
  for (std::size_t i = 0; i < file.text.size(); i += 83) {
    std::string changed = file.text;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(file.believes(changed)) << i;
  }
  EXPECT_FALSE(file.believes(file.text + "1"));
  EXPECT_FALSE(file.believes("\n\n\n"));
}

TEST(PlanCache, ComparesTheWholeKeyBecauseHashesCollide) {
  const test::TemporaryFolder folder;
  internal::store(folder.path().string(), "key", "text");
  EXPECT_EQ(internal::load(folder.path().string(), "key"), "text");
  // As if "other" had the hash of "key".
  std::filesystem::rename(internal::store_path(folder.path().string(), "key"),
                          internal::store_path(folder.path().string(), "other"));
  EXPECT_EQ(internal::load(folder.path().string(), "other"), std::nullopt);
  EXPECT_EQ(internal::load(folder.path().string(), "key"), std::nullopt);
}

TEST(PlanCache, BelievesNoAnswerThatBreaksTheRulesThoughItsChecksumIsRight) {
  OneFile file;
  const std::size_t first = file.text.find('\n');
  const std::string key = file.text.substr(0, first);
  const std::string answer = *internal::load(file.folder.path().string(), key);
  const auto believes_answer = [&](const std::string& text) {
    internal::store(file.folder.path().string(), key, text);
    return file.believes(test::read_file(file.path));
  };
  EXPECT_TRUE(believes_answer(answer));
  EXPECT_FALSE(believes_answer("{}"));
  EXPECT_FALSE(believes_answer("[1, 2"));
  internal::Json other = json::parse_own(answer);
  other["plan"]["partition"]["x"] = 1473;
  EXPECT_FALSE(believes_answer(other.dump()));
}

TEST(PlanCache, ReturnsAPlanAndSaysWhichFolderItCannotWrite) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  EXPECT_THAT([&] { PlanCache cache(file); }, testing::ThrowsMessage<Error>(HasSubstr(file)));
  EXPECT_THAT([&] { PlanCache cache(file + "/below"); },
              testing::ThrowsMessage<Error>(HasSubstr(file + "/below is no folder")));
  const std::string lost = folder / "lost";
  PlanCache cache(lost);
  std::filesystem::remove(lost);
  EXPECT_EQ(cache.plan(layer(), device::machine_preset("gc200")).plan,
            plan(layer(), device::machine_preset("gc200")).plan);
  EXPECT_THAT(cache.store_failure(), HasSubstr("lost/"));
}

TEST(PlanCache, GivesAnyNumberOfThreadsTheSameAnswers) {
  const test::TemporaryFolder folder;
  PlanCache cache(folder.path().string(), Bytes(20'000));
  constexpr std::int64_t kLayers = 8, kThreads = 6, kRounds = 5;
  std::vector<std::string> expected;
  for (std::int64_t i = 0; i < kLayers; ++i)
    expected.push_back(text_of(plan(layer(i + 1), device::machine_preset("gc200"))));
  std::vector<std::int64_t> wrong(kThreads, 0);
  {
    std::vector<std::jthread> threads;
    for (std::int64_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (std::int64_t i = 0; i < kLayers * kRounds; ++i) {
          const std::int64_t which = (i + t) % kLayers;
          wrong[std::size_t(t)] +=
              text_of(cache.plan(layer(which + 1), device::machine_preset("gc200"))) !=
              expected[std::size_t(which)];
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<std::int64_t>(kThreads, 0));
  const PlanCacheCounts counts = cache.counts();
  EXPECT_EQ(counts.from_memory + counts.from_disk + counts.planned, kLayers * kThreads * kRounds);
  EXPECT_EQ(files_in(folder).size(), std::size_t(kLayers)) << "no temporary file is left";
}

// The work of a child process of the next test; the exit code is 0 if it succeeded.
int ask_for_all_layers(const std::string& folder) {
  for (int round = 0; round < 20; ++round) {
    PlanCache cache(folder);
    for (std::int64_t batch = 1; batch <= 4; ++batch)
      if (!cache.plan(layer(batch), device::machine_preset("gc200")).has_plan) return 1;
    if (round > 0 && cache.counts().planned != 0) return 2;
  }
  return 0;
}

TEST(PlanCache, IsSafeUnderProcessesThatShareItsFolder) {
  const test::TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(ask_for_all_layers(folder.path().string()));
    ASSERT_GT(child, 0);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(files_in(folder).size(), 4u);
  PlanCache cache(folder.path().string());
  for (std::int64_t batch = 1; batch <= 4; ++batch)
    expect_answer(cache.plan(layer(batch), device::machine_preset("gc200")), layer(batch));
  EXPECT_EQ(cache.counts(), (PlanCacheCounts{0, 4, 0}));
}

TEST(PlanCache, AnswersInAChildOfForkWhileAnotherThreadAsks) {
  PlanCache cache;
  std::atomic<std::int64_t> asked = 0;
  const std::jthread asking([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      cache.plan(layer(1 + asked++ % 4), device::machine_preset("gc200"));
  });
  while (asked < 5) std::this_thread::yield();
  for (int trial = 0; trial < 5; ++trial)
    EXPECT_EQ(test::in_child(
                  [&] { return cache.plan(layer(2), device::machine_preset("gc200")).has_plan; }),
              0)
        << trial;
}

}  // namespace
}  // namespace tessera::planner
