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
  kInternal = 6        // a broken invariant, no memory, or results that could not be written
};

// Runs `body` and returns its exit code. An exception becomes a message "<program>: ..." on stderr
// and the exit code of its kind.
int guarded_main(const char* program, const std::function<int()>& body);

// Writes text to stdout and flushes it. Throws Error{Internal} if that fails.
void print_results(const std::string& text);

// Writes text to a file, which is replaced if it exists, or to stdout if `path` is empty. Throws
// Error{Internal}, which names the path and the system's reason, if that fails.
void write_results(const std::string& path, const std::string& text);

// Writes files, given as {name, bytes}, to a folder, which is created if it does not exist. Throws
// Error{InvalidArgument} with the system's reason if the folder or a file cannot be written.
void write_folder(const std::string& folder,
                  const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace tessera::tools
