#include "tessera/tools/options/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

// A process of our own at a pseudo terminal of 60 columns.
class AtTerminal {
 public:
  // `body` runs in the new process, which ends with its result.
  template <class Body>
  explicit AtTerminal(Body&& body) {
    const winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ == 0) _exit(body());
  }

  // Reads until `text` has come or the process has ended; what has come so far.
  const std::string& read_until(const std::string& text) {
    char bytes[4096];
    while (seen_.find(text) == seen_.npos) {
      const ssize_t count = ::read(terminal_, bytes, sizeof bytes);
      if (count <= 0) break;  // the terminal is closed when the process ends
      seen_.append(bytes, std::size_t(count));
    }
    return seen_;
  }
  void interrupt() const { kill(pid_, SIGINT); }
  // 128 + signal when a signal ended it.
  int wait() {
    read_until("\x01 never");
    int status = 0;
    waitpid(pid_, &status, 0);
    close(terminal_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  std::string seen_;
};

// Work of so long under one progress, 3 of 12 parts done.
int work(std::chrono::milliseconds length, bool quiet = false) {
  tools::Progress progress(quiet);
  progress.set("measuring", 3, 12);
  std::this_thread::sleep_for(length);
  return 0;
}

// The text on terminals of several kinds after some time. They run together, as each takes seconds.
struct Seen {
  std::string bar, no_color, dumb, early, quiet, long_name;

  Seen() {
    const auto child = [](const char* term, bool is_colourless, auto body) {
      return AtTerminal([&] {
        setenv("TERM", term, 1);
        is_colourless ? setenv("NO_COLOR", "1", 1) : unsetenv("NO_COLOR");
        return body();
      });
    };
    const auto for_long = [] { return work(2300ms); };
    std::vector<AtTerminal> children;
    children.push_back(child("xterm-256color", false, for_long));
    children.push_back(child("xterm-256color", true, for_long));
    children.push_back(child("dumb", false, for_long));
    children.push_back(child("xterm", false, [] { return work(1500ms); }));
    children.push_back(child("xterm", false, [] { return work(2300ms, /*quiet=*/true); }));
    children.push_back(child("xterm", false, [] {
      tools::Progress progress(false);
      progress.set(std::string(200, 'x'), 1, 2);
      std::this_thread::sleep_for(2300ms);
      return 0;
    }));
    std::string* const texts[] = {&bar, &no_color, &dumb, &early, &quiet, &long_name};
    for (std::size_t i = 0; i < children.size(); ++i) {
      *texts[i] = children[i].read_until("\x01 never");
      EXPECT_EQ(children[i].wait(), 0) << i;
    }
  }
};

const Seen& seen() {
  static const Seen once;
  return once;
}

const std::string kBar = "\r[#######.......................] measuring 3 of 12, 2 s";

TEST(Progress, IsABarOnATerminalThatIsTakenAway) {
  EXPECT_THAT(seen().bar, testing::StartsWith(kBar));
  EXPECT_THAT(seen().bar, Not(HasSubstr("\n")));
  EXPECT_THAT(seen().bar, testing::EndsWith("\r" + std::string(kBar.size() - 1, ' ') + "\r"));
}

TEST(Progress, NeedsNoColourAndNoEscapes) {
  EXPECT_THAT(seen().no_color, testing::StartsWith(kBar));
  EXPECT_THAT(seen().no_color + seen().bar, Not(HasSubstr("\x1b")));
}

TEST(Progress, IsALineWhereTheTerminalIsDumb) {
  EXPECT_EQ(seen().dumb, "measuring 3 of 12, 2 s\r\n");
}

TEST(Progress, SaysNothingInTheFirstTwoSecondsAndNothingWhenQuiet) {
  EXPECT_EQ(seen().early, "");
  EXPECT_EQ(seen().quiet, "");
}

TEST(Progress, KeepsWithinTheTerminal) {
  EXPECT_EQ(seen().long_name.find('\r', 1), 60u) << "59 columns and the \\r before them";
}

TEST(Progress, IsALineWhereThereIsNoTerminal) {
  // A table from a pipe that ends once there is a line, at the latest after ten seconds.
  const TemporaryFolder folder;
  const std::string lines = folder / "lines";
  run({"/bin/sh", "-c",
       "(printf 'x\\n'; for i in $(seq 100); do [ -s \"$1\" ] || sleep 0.1; done) | "
       "\"$0\" plan --table - 2>\"$1\"",
       TESSERA_TOOL, lines});
  EXPECT_THAT(read_file(lines), testing::StartsWith("planning, 2 s\n"));
}

// A batch of many problems in a process of its own; Ctrl-C once the bar is there.
TEST(Interrupt, EndsABatchWithASummaryAndResultsThatGoOn) {
  const TemporaryFolder folder;
  constexpr int kProblems = 2000;
  {
    std::ofstream batch(folder / "batch");
    for (int i = 1; i <= kProblems; ++i)
      batch << "--input-size=256 --output-size=256 --density=0.2 --seed=" << i << "\n";
  }
  const std::string batch = folder / "batch", results = folder / "results.jsonl";
  AtTerminal child([&] {
    setenv("TERM", "xterm", 1);
    return execl(TESSERA_TOOL, "tessera", "bench", "--batch", batch.c_str(), "--output",
                 results.c_str(), nullptr);
  });
  child.read_until("] problem ");
  // A slow build may need longer for its first problem than the bar waits.
  for (int i = 0; i < 1200 && std::ifstream(results).peek() == EOF; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  child.interrupt();
  const std::string seen = child.read_until("tests:");
  EXPECT_EQ(child.wait(), 130);
  EXPECT_THAT(seen, HasSubstr("tests:"));
  std::ifstream lines(results);
  int whole = 0;
  for (std::string line; std::getline(lines, line); ++whole) {
    EXPECT_THAT(line, testing::EndsWith("}"));
    EXPECT_THAT(line, HasSubstr("\"status\":\"PASSED\"")) << "a problem that was cut short counts";
  }
  EXPECT_GT(whole, 0);
  EXPECT_LT(whole, kProblems);
}

TEST(Interrupt, EndsASweepWithWhatWasPlanned) {
  const TemporaryFolder folder;
  std::string values = "0.001";
  for (int i = 2; i < 400; ++i) values += "," + std::to_string(i / 1000.0);
  const std::string script =
      "exec \"$0\" sweep --over density --values \"$2\" --input-size 4096 --output-size 4096 "
      "--batch-size 64 --json > \"$1\" & sleep 1; kill -INT $!; wait $!";
  const Outcome outcome =
      run({"/bin/bash", "-c", script, TESSERA_TOOL, folder / "sweep.json", values});
  EXPECT_EQ(outcome.exit, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
  const std::string json = read_file(folder / "sweep.json");
  EXPECT_THAT(json, HasSubstr("\"status\": \"partial\""));
  EXPECT_THAT(json, testing::EndsWith("}\n"));
}

}  // namespace
}  // namespace tessera::test
