#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/launcher.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/run.hpp"

namespace {

// Continues as `tessera run`, which takes the same options and links what several ranks need.
[[noreturn]] void continue_as_tessera_run(int argc, char** argv) {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  const std::string tessera = (own.parent_path() / "tessera").string();
  std::vector<std::string> words = {tessera, "run"};
  for (int i = 1; i < argc; ++i) words.emplace_back(argv[i]);
  if (std::ranges::any_of(words, [](const auto& word) { return word.starts_with("--config"); }))
    throw tessera::Error(tessera::ErrorCode::InvalidArgument,
                         "--config is for one process; give several ranks the options in a file "
                         "of words: @FILE");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(tessera.c_str(), pointers.data());
  throw tessera::Error(
      tessera::ErrorCode::InvalidArgument,
      fmt::format("several ranks run in the program tessera, and there is none at {}; build it, or "
                  "start this program without mpirun",
                  tessera));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tessera;
  return tools::guarded_main("sparse_fc_layer", [&] {
    if (is_started_by_mpi()) continue_as_tessera_run(argc, argv);
    const tools::Parsed parsed = tools::parse_arguments({argv, argv + argc});
    if (parsed.exit) return *parsed.exit;
    return tools::run_and_print(parsed.arguments, "sparse_fc_layer");
  });
}
