#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// The files that a command line names. They are checked together before any work starts, so that a
// run does not end with a result that cannot be written, or with one file where two were asked for.
namespace tessera::tools {

// Declare that the value of an option is a file that is written, or a folder that receives the
// files of a run (is_result_of_a_run). The command line then refuses a path that cannot be written.
void require_writable_file(CLI::Option& option);
void require_writable_folder(CLI::Option& option);

// Returns whether a run writes a file of that name to its folder.
bool is_result_of_a_run(std::string_view name);

// Throws CLI::ValidationError, which names both options, if a file of a parsed command line is
// written twice, or is read as well as written. Every other value that names a file counts as one
// that is read, and so do the `@FILE`s of `words`, the command line before it was parsed.
// --checkpoint may replace the file of --resume, whose run it continues.
void check_paths(const CLI::App& app, const std::vector<std::string>& words);

// Throws CLI::ValidationError for an option that writes a file, with the reason `why`.
void refuse_written_paths(const CLI::App& app, const std::string& why);

}  // namespace tessera::tools
