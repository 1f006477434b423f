#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace tessera::tools::internal {

// Says on stderr what is being done, once it has taken two seconds: on a terminal a bar that is
// written over, kept within its columns and taken away at the end; a line every ten seconds
// elsewhere, and where TERM is dumb or not set. No colour and no escapes, so NO_COLOR has nothing
// to take away. One object at a time that is not quiet; any thread may call.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What is done from now on, as `done` of `all` parts; all 0: nobody knows how many.
  void set(const std::string& what, std::int64_t done = 0, std::int64_t all = 0);
  // Takes the bar away before something is printed; it comes back by itself.
  void hide();

 private:
  void show(double seconds);
  void erase();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::string what_;
  std::int64_t done_ = 0, all_ = 0;
  bool is_over_ = false;
  const bool has_bar_;
  std::size_t bar_width_ = 0;  // of what stands on the terminal now
  std::thread thread_;
};

// Is stderr a terminal on which a line can be written over?
bool stderr_is_terminal();

// From the call on, Ctrl-C and SIGTERM are noted instead of ending the program; the second one ends
// it.
void catch_interrupts();
bool is_interrupted();

}  // namespace tessera::tools::internal
