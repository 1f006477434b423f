#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace tessera::tools {

// Reports on stderr the work that has taken more than two seconds. On a terminal it draws a bar
// that is overwritten in place, stays within the columns and is erased at the end. Otherwise, and
// if TERM is dumb or not set, it prints a line every ten seconds. It uses no colours and no escape
// sequences, so NO_COLOR has no effect. Only one object that is not quiet may exist at a
// time. Thread-safe.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Sets the current work, of which `done` of `all` parts are finished. `all` 0 means that the
  // number of parts is unknown.
  void set(const std::string& what, std::int64_t done = 0, std::int64_t all = 0);

  // Erases the bar before other output is printed. The bar is drawn again by itself.
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
  std::size_t bar_width_ = 0;  // columns of the bar on the terminal now
  std::thread thread_;
};

// Returns true if stderr is a terminal on which a line can be overwritten.
bool stderr_is_terminal();

}  // namespace tessera::tools
