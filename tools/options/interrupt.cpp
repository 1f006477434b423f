#include "tessera/tools/options/interrupt.hpp"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "tessera/base/write_file.hpp"
#include "tessera/tools/options/exit_code.hpp"

namespace tessera::tools {
namespace {

// With it and the output, a program ends within 0.2 s, which people take for at once.
constexpr std::chrono::milliseconds kGrace(150);

volatile sig_atomic_t first_signal = 0;
sem_t signals;

// The state that the watching thread shares with the others. It is never destroyed, because that
// thread runs until the end of the process.
struct Watch {
  std::mutex mutex;
  int ending = 0;  // objects of EndsByItself
  std::function<std::string()> results = [] { return std::string(); };
};

Watch& watch() {
  static Watch& one = *new Watch;
  return one;
}

extern "C" void note_signal(int signal) {
  if (first_signal != 0) {
    remove_unfinished_files();
    ::_exit(interrupted_exit_code());
  }
  first_signal = signal;
  ::sem_post(&signals);
}

void end_after_the_grace() {
  while (::sem_wait(&signals) != 0) {
  }
  std::this_thread::sleep_for(kGrace);
  const std::lock_guard lock(watch().mutex);
  if (watch().ending > 0) return;
  const std::string results = watch().results();
  std::fwrite(results.data(), 1, results.size(), stdout);
  std::fflush(stdout);
  print_warning("interrupted; unfinished work is lost");
  remove_unfinished_files();
  ::_exit(interrupted_exit_code());
}

}  // namespace

void catch_interrupts() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::sem_init(&signals, /*shared between processes*/ 0, 0);
    watch();
    try {
      std::thread(end_after_the_grace).detach();
    } catch (const std::system_error&) {
      return;  // no more threads are allowed, so signals end the program at once
    }
    struct sigaction action = {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
  });
}

bool is_interrupted() { return first_signal != 0; }

int interrupted_exit_code() { return first_signal == SIGTERM ? kTerminated : kInterrupted; }

EndsByItself::EndsByItself() {
  const std::lock_guard lock(watch().mutex);
  ++watch().ending;
}

EndsByItself::~EndsByItself() {
  const std::lock_guard lock(watch().mutex);
  if (!is_interrupted()) --watch().ending;
}

void set_results_so_far(std::string text) {
  set_results_so_far([text = std::move(text)] { return text; });
}

void set_results_so_far(std::function<std::string()> text) {
  const std::lock_guard lock(watch().mutex);
  watch().results = std::move(text);
}

void change_results(const std::function<void()>& change) {
  const std::lock_guard lock(watch().mutex);
  change();
}

}  // namespace tessera::tools
