#pragma once

#include <functional>
#include <string>

// Ctrl-C and SIGTERM.
namespace tessera::tools {

// From this call on, the first Ctrl-C or SIGTERM is recorded, and the program has 0.15 seconds to
// end by itself. After them it is ended: the results so far are printed, unfinished files are
// removed, and the exit code is interrupted_exit_code(). A second signal ends the program at once,
// with the same exit code.
void catch_interrupts();

// Returns true after a recorded Ctrl-C or SIGTERM.
bool is_interrupted();

// Returns 130 after Ctrl-C and without a signal, and 143 after SIGTERM.
int interrupted_exit_code();

// While an object lives, that time does not count: the work looks at is_interrupted() itself, or
// it only reports what is finished. After an interrupt the rest of the program is such work.
class EndsByItself {
 public:
  EndsByItself();
  EndsByItself(const EndsByItself&) = delete;
  EndsByItself& operator=(const EndsByItself&) = delete;
  ~EndsByItself();
};

// Sets the text that is printed if the program is ended after an interrupt. Thread-safe.
void set_results_so_far(std::string text);

// Sets a function that makes this text from results which grow, so that it need not be made for
// each of them. It is called by another thread and may read only what is changed in
// change_results(). What it reads must live until the end of the program or the next call of
// set_results_so_far().
void set_results_so_far(std::function<std::string()> text);

// Calls `change` while no text is made from the results.
void change_results(const std::function<void()>& change);

}  // namespace tessera::tools
