#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tessera::inline v0::tools::internal {

// Says on stderr what is being done, once it has taken two seconds: one line that is written over
// on a terminal, a line every ten seconds elsewhere. Escapes are used on a terminal only, and
// neither with NO_COLOR set nor with TERM=dumb. One object at a time; any thread may call set().
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What is done from now on, as `done` of `all` parts; all 0: nobody knows how many.
  void set(const std::string& what, std::int64_t done = 0, std::int64_t all = 0);

 private:
  void show(bool is_terminal, double seconds);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::string what_;
  std::int64_t done_ = 0, all_ = 0;
  bool is_over_ = false, has_written_ = false;
  std::thread thread_;
};

// May stderr take escapes and lines that are written over?
bool stderr_is_terminal();

// From the call on, Ctrl-C and SIGTERM are noted instead of ending the program; the second one ends
// it.
void catch_interrupts();
bool is_interrupted();

}  // namespace tessera::inline v0::tools::internal
