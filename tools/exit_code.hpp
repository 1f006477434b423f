#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::tools {

// What every program of the project answers to the shell.
enum ExitCode {
  kOk = 0,
  kCheckFailed = 1,    // a result is wrong
  kUsage = 2,          // the command line asks for something that cannot be
  kBadInput = 3,       // a file breaks the rules of its format, or is not there
  kNothingFits = 4,    // no plan, or the pattern does not fit its buckets or the machine
  kInterrupted = 130,  // Ctrl-C; what was done is reported
  kInternal = 6        // ours: a broken promise, no memory, results that could not be written
};

// Runs `body`, turns what it throws into a message "<program>: ..." on stderr and an exit code.
int guarded_main(const char* program, const std::function<int()>& body);

// Writes to stdout and makes sure it arrived; Error{Internal} when it did not.
void print_results(const std::string& text);

// The same into a file, over one that was there; an empty path: to stdout. Error{Internal} names
// the path and the system's reason.
void write_results(const std::string& path, const std::string& text);

// Files of these names and bytes in a folder, which is made when it is not there;
// Error{InvalidArgument} with the system's reason when one cannot be written.
void write_folder(const std::string& folder,
                  const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace tessera::tools
