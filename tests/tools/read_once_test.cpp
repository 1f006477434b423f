// A run reads the file of its weights once, whatever it says of other blocks and densities.

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

// Returns how often a file is opened by this program and others while `work` runs. Closing is
// watched, too, because the system joins equal events that follow each other.
int opens_of(const std::string& path, const std::function<void()>& work) {
  const int watch = inotify_init1(IN_NONBLOCK);
  EXPECT_GE(watch, 0);
  EXPECT_GE(inotify_add_watch(watch, path.c_str(), IN_OPEN | IN_CLOSE_NOWRITE), 0);
  work();
  int opens = 0;
  alignas(inotify_event) char events[65536];
  for (ssize_t bytes; (bytes = read(watch, events, sizeof(events))) > 0;)
    for (ssize_t at = 0; at < bytes;) {
      inotify_event event;
      std::memcpy(&event, events + at, sizeof(event));
      opens += (event.mask & IN_OPEN) != 0;
      at += ssize_t(sizeof(event) + event.len);
    }
  close(watch);
  return opens;
}

void expect_success(const std::vector<std::string>& words) {
  std::vector<std::string> command{TESSERA_TOOL};
  command.insert(command.end(), words.begin(), words.end());
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
}

TEST(FilesOfWeights, AreReadOnceInEveryRun) {
  const TemporaryFolder folder;
  const auto pattern = sparse::random_pattern(48, 64, {1, 1}, 0.2, 1);
  for (const std::string name : {"w.mtx", "w.smtx"}) {
    const std::string path = folder / name;
    if (name == "w.mtx")
      io::write_mtx_file(path, pattern);
    else
      io::write_smtx_file(path, pattern);
    const int once = opens_of(path, [&] { io::read_matrix(path); });
    EXPECT_GE(once, 1);
    const std::string matrix = "--matrix=" + path;
    const std::vector<std::vector<std::string>> runs{
        {"run", matrix, "--batch-size=8", "--tiles-per-ipu=16"},
        {"run", matrix, "--batch-size=8", "--tiles-per-ipu=16", "--block-size=4"},
        {"run", matrix, "--batch-size=8", "--tiles-per-ipu=16", "--block-size=auto"},
        {"run", matrix, "--batch-size=8", "--tiles-per-ipu=16", "--static", "--json"},
        {"run", matrix, "--batch-size=8", "--machine=host", "--block-size=auto"},
        {"run", matrix, "--batch-size=8", "--machine=host", "--block-size=4", "--json"}};
    for (const std::vector<std::string>& words : runs)
      EXPECT_EQ(opens_of(path, [&] { expect_success(words); }), once)
          << testing::PrintToString(words);
  }
}

TEST(FilesOfWeights, OfEncodedOnesAreReadOnceToo) {
  const TemporaryFolder folder;
  const std::string path = folder / "w.safetensors";
  expect_success({"run", "--input-size=48", "--output-size=32", "--density=0.3", "--batch-size=8",
                  "--tiles-per-ipu=16", "--quiet", R"(--plan-constraints={"useDense": false})",
                  "--save-buckets=" + path});
  EXPECT_EQ(opens_of(path, [&] { expect_success({"run", "--buckets=" + path}); }), 1);
}

}  // namespace
}  // namespace tessera::test
