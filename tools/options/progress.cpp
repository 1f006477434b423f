#include "tessera/tools/options/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace tessera::tools {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr Clock::duration kPatience = 2s, kBeat = 10s, kRedraw = 200ms;

constexpr std::int64_t kBarWidth = 30;

// Returns the columns of the terminal. A bar must not exceed the line, because it could then not be
// overwritten.
std::size_t terminal_columns() {
  winsize size = {};
  const bool is_known = ::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col : 80;
}

// Writes to stderr as it is. A closed or full stderr is no failure of the work.
void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(2) == 1 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

Progress::Progress(bool quiet) : has_bar_(!quiet && stderr_is_terminal()) {
  if (quiet) return;
  const auto show_until_over = [this] {
    const auto start = Clock::now();
    std::unique_lock lock(mutex_);
    auto next = start + kPatience;
    while (!wake_.wait_until(lock, next, [this] { return is_over_; })) {
      show(std::chrono::duration<double>(Clock::now() - start).count());
      next = Clock::now() + (has_bar_ ? kRedraw : kBeat);
    }
    erase();
  };
  try {
    thread_ = std::thread(show_until_over);
  } catch (const std::system_error&) {  // a limit on threads: the work goes on without a display
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Progress::set(const std::string& what, std::int64_t done, std::int64_t all) {
  const std::lock_guard lock(mutex_);
  what_ = what, done_ = done, all_ = all;
}

void Progress::hide() {
  const std::lock_guard lock(mutex_);
  erase();
}

void Progress::erase() {
  if (bar_width_ == 0) return;
  put(fmt::format("\r{:{}}\r", "", bar_width_));
  bar_width_ = 0;
}

void Progress::show(double seconds) {
  const std::string parts = all_ > 0 ? fmt::format(" {} of {}", done_, all_) : std::string();
  const std::string text =
      fmt::format("{}{}, {:.0f} s", what_.empty() ? "preparing" : what_, parts, seconds);
  if (has_bar_) {
    const std::int64_t filled = all_ > 0 ? kBarWidth * done_ / all_ : 0;
    std::string line = fmt::format("[{:#<{}}{:.<{}}] {}", "", filled, "", kBarWidth - filled, text);
    line.resize(std::min(line.size(), terminal_columns() - 1));
    put(fmt::format("\r{:<{}}", line, std::max(line.size(), bar_width_)));
    bar_width_ = line.size();
  } else {
    put(text + "\n");
  }
}

}  // namespace tessera::tools
