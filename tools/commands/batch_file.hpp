#pragma once

#include <string>
#include <vector>

namespace tessera::tools {

// Reads the problems of a file, one per line, as words. A line with --batch FILE includes another
// file, whose path is relative to this one, up to 8 levels deep. Other options on a line with
// --batch or --reset become defaults: they apply to every later problem, also in included files,
// that does not give them itself. --reset clears the defaults. Throws Error{BadInput} as for any
// file of options, and beyond 2^20 lines or 2^21 words of all problems, each counted as often as
// its file is included.
std::vector<std::vector<std::string>> read_batch(const std::string& path);

// Returns a command that runs the same problem alone, quoted for a shell.
std::string repro_line(const std::vector<std::string>& words);

}  // namespace tessera::tools
