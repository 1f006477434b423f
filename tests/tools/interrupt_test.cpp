#include "tessera/tools/options/interrupt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tessera/base/internal/unfinished_files.hpp"
#include "tessera/study/timing.hpp"
#include "tessera/tests/support/process.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A process of its own that catches interrupts and then runs `body`, whose result is its exit code.
class Child {
 public:
  template <class Body>
  explicit Child(Body&& body) {
    if (::pipe(out_) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ != 0) {
      ::close(out_[1]);
      return;
    }
    ::dup2(out_[1], 1);
    ::dup2(out_[1], 2);
    tools::catch_interrupts();
    std::fputs("ready", stdout);
    std::fflush(stdout);
    ::_exit(body());
  }

  // Sends the signals after the child is ready, and returns its exit code, or 1000 + a signal.
  int end_by(std::initializer_list<int> signals) {
    read();
    for (const int signal : signals) ::kill(pid_, signal);
    while (read()) {
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  const std::string& output() const { return text_; }

 private:
  bool read() {
    char bytes[4096];
    const ssize_t count = ::read(out_[0], bytes, sizeof bytes);
    if (count > 0) text_.append(bytes, std::size_t(count));
    return count > 0;
  }

  int out_[2] = {};
  pid_t pid_ = -1;
  std::string text_;
};

// Work that does not look at signals, longer than any test may take.
int work() {
  for (;;) std::this_thread::sleep_for(1h);
}

TEST(Interrupt, EndsWorkThatDoesNotStopAndReportsWhatWasFinished) {
  for (const auto& [signal, exit] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    Child child([] {
      tools::set_results_so_far("3 of 7 problems\n");
      return work();
    });
    EXPECT_EQ(child.end_by({signal}), exit);
    EXPECT_THAT(child.output(), HasSubstr("3 of 7 problems\n"));
    EXPECT_THAT(child.output(), HasSubstr("interrupted"));
  }
}

// The bar of 0.2 seconds is the program's; a busy computer gets ten times that here.
TEST(Interrupt, EndsWorkThatDoesNotStopSoon) {
  Child child(work);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(child.end_by({SIGINT}), 130);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
}

TEST(Interrupt, EndsRepeatedMeasurementsAfterTheRunThatGoesOn) {
  Child child([] {
    const tools::EndsByItself passing;
    int runs = 0;
    const auto run_once = [&] {
      while (!tools::is_interrupted()) std::this_thread::sleep_for(1ms);
      ++runs;
      return host::HostTimes();
    };
    study::measure(run_once, tools::is_interrupted);
    return runs;
  });
  EXPECT_EQ(child.end_by({SIGINT}), 2) << "the first run and the one that is measured";
}

TEST(Interrupt, LeavesNoUnfinishedFile) {
  const TemporaryFolder folder;
  Child child([&] {
    const std::string path = folder / internal::unfinished_name();
    const internal::Unfinished entry(path);
    const auto file = internal::create_unfinished(path);
    return work();
  });
  EXPECT_EQ(child.end_by({SIGTERM}), 143);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 0);
}

TEST(Interrupt, LetsWorkThatStopsByItselfTakeItsTime) {
  Child child([] {
    {
      const tools::EndsByItself pass;
      while (!tools::is_interrupted()) std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(1500ms);  // the report is written
    return 42;
  });
  EXPECT_EQ(child.end_by({SIGINT}), 42);
}

TEST(Interrupt, EndsAtOnceWithTheSecondSignal) {
  Child child([] {
    const tools::EndsByItself pass;
    return work();
  });
  // The system may deliver two signals that wait in either order.
  EXPECT_THAT(child.end_by({SIGINT, SIGTERM}), testing::AnyOf(130, 143));
}

// The first of four block shapes is finished in a quarter of the time. The wait is half as long
// again when none is, and a little shorter when all are, so that one wait ends between the first
// and the last even if the computer gets faster and slower meanwhile.
TEST(Interrupt, PrintsTheCrossoversThatWereFinished) {
#ifdef TESSERA_SANITIZED  // takes fifteen times as long there
  const std::string side = "128";
#else
  const std::string side = "2048";
#endif
  double seconds = 0.05;
  for (int attempt = 0; attempt < 60 && seconds < 100; ++attempt) {
    const Outcome outcome =
        run({"timeout", "--signal=INT", "--preserve-status", std::to_string(seconds), TESSERA_TOOL,
             "crossover", "--json", "--input-size=" + side, "--output-size=" + side,
             "--batch-size=256", "--single-phase=fwd"});
    const auto study = nlohmann::json::parse(outcome.out.empty() ? "{}" : outcome.out);
    const bool is_whole = outcome.exit == 0;
    if (is_whole || !study.contains("blocks") || study["blocks"].empty()) {
      seconds *= is_whole ? 0.8 : 1.5;
      continue;
    }
    EXPECT_EQ(outcome.exit, 130);
    EXPECT_EQ(study["status"], "partial");
    EXPECT_LT(study["blocks"].size(), 4u);
    return;
  }
  FAIL() << "no result after any wait";
}

}  // namespace
}  // namespace tessera::test
