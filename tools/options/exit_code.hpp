#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::tools {

// The exit codes of all programs of the project.
enum ExitCode {
  kOk = 0,
  kCheckFailed = 1,    // a result is wrong
  kUsage = 2,          // the command line asks for something impossible
  kBadInput = 3,       // a file is missing or breaks the rules of its format
  kNothingFits = 4,    // no plan, or the pattern does not fit its buckets or the machine
  kInterrupted = 130,  // Ctrl-C; the work that was finished is reported
  kTerminated = 143,   // the same after SIGTERM
  kInternal = 6        // results that could not be written, no memory, or a broken invariant
};

// Runs `body` and returns its exit code. An exception becomes a message "<program>: ..." on stderr
// and the exit code of its kind. A limit on the size of files, and a closed pipe, become errors of
// writing instead of signals that end the program.
int guarded_main(const char* program, const std::function<int()>& body);

// Prints the exception that is being handled as guarded_main does, and returns its exit code.
int print_failure(const char* program);

// Writes text to stderr with control characters escaped, but for line ends and tabs. Nothing
// happens if stderr is closed or full, because there is no place to report it.
void print_message(const std::string& text);

// Prints "<program>: warning: <text>" with the name that guarded_main was given.
void print_warning(const std::string& text);

// Writes text to stdout and flushes it. Throws CannotWrite if that fails.
void print_results(const std::string& text);

// Writes text for people to stdout as print_results does, with control characters escaped, but for
// line ends and tabs.
void print_text(const std::string& text);

// Writes text to a file, or to stdout if `path` is empty. Throws the errors of write_file
// (base/write_file.hpp) and of print_results.
void write_results(const std::string& path, const std::string& text);

// Writes files, given as {name, bytes}, to a folder, which is created if it does not exist. Throws
// CannotWrite with the system's reason if the folder or a file cannot be written, and the errors of
// check_stays_inside (base/write_file.hpp).
void write_folder(const std::string& folder,
                  const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace tessera::tools
