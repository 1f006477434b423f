#include "tessera/tools/internal/progress.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tessera::inline v0::tools::internal {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr Clock::duration kPatience = 2s, kBeat = 10s, kRedraw = 200ms;

volatile sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int) { interrupted = 1; }

}  // namespace

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  const bool is_dumb = term == nullptr || std::strcmp(term, "dumb") == 0;
  return ::isatty(2) == 1 && !is_dumb && (no_color == nullptr || *no_color == 0);
}

Progress::Progress(bool quiet) {
  if (quiet) return;
  thread_ = std::thread([this, is_terminal = stderr_is_terminal()] {
    const auto start = Clock::now();
    std::unique_lock lock(mutex_);
    auto next = start + kPatience;
    while (!wake_.wait_until(lock, next, [this] { return is_over_; })) {
      show(is_terminal, std::chrono::duration<double>(Clock::now() - start).count());
      next = Clock::now() + (is_terminal ? kRedraw : kBeat);
    }
    if (is_terminal && has_written_) fmt::print(stderr, "\r\x1b[K");
  });
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

void Progress::show(bool is_terminal, double seconds) {
  constexpr std::int64_t kWidth = 30;
  const std::int64_t filled = all_ > 0 ? kWidth * done_ / all_ : 0;
  const std::string parts = all_ > 0 ? fmt::format(" {} of {}", done_, all_) : std::string();
  has_written_ = true;
  if (is_terminal)
    fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}] {}{}, {:.0f} s", "", filled, "", kWidth - filled,
               what_, parts, seconds);
  else
    fmt::print(stderr, "{}{}, {:.0f} s\n", what_, parts, seconds);
  std::fflush(stderr);
}

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

bool is_interrupted() { return interrupted != 0; }

}  // namespace tessera::inline v0::tools::internal
