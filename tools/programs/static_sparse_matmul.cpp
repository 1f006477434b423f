// PopLibs' program of this name: a sparse matrix [m][k] whose pattern stays times a dense one
// [k][n], as `tessera run --static` of the forward pass. Names that `run` does not have are
// translated.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/run.hpp"

namespace {

// A name of PopLibs, ours, and the text before and after a value.
struct Translation {
  std::string_view theirs, ours, before = "", after = "";
};
constexpr Translation kNames[] = {
    {"--m", "--output-size"},
    {"--k", "--input-size"},
    {"--n", "--batch-size"},
    {"--block-length", "--block-size"},
    {"--verbose", "--report-plan"},
    {"--sparsity-matrix-file", "--mask-file"},
    {"--output-sparsity-matrix-file", "--write-mask"},
    {"--available-memory-proportion", "--matmul-options", "{\"availableMemoryProportion\": ", "}"}};

// The beginnings of words that give a pattern or its density.
constexpr std::string_view kPatterns[] = {
    "--spars", "--dens", "--mask-file", "--matrix", "--pattern", "--config", "@"};

std::vector<std::string> as_run(int argc, char** argv) {
  std::vector<std::string> words{argv[0], "--static", "--single-phase=fwd"};
  const Translation* valued = nullptr;  // the name whose value is the next word
  bool has_pattern = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (valued != nullptr) word = std::string(valued->before) + word + std::string(valued->after);
    if (std::exchange(valued, nullptr) == nullptr) {
      const std::size_t equals = word.find('=');
      const auto found = std::ranges::find(kNames, word.substr(0, equals), &Translation::theirs);
      if (found != std::end(kNames) && equals == std::string::npos)
        valued = found, word = found->ours;
      else if (found != std::end(kNames))
        word = std::string(found->ours) + "=" + std::string(found->before) +
               word.substr(equals + 1) + std::string(found->after);
      if (word == "--report-plan") valued = nullptr;
    }
    has_pattern |= std::ranges::any_of(kPatterns, [&](auto one) { return word.starts_with(one); });
    words.push_back(word);
  }
  if (!has_pattern) words.emplace_back("--density=0.1");  // PopLibs' default
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tessera::tools;
  return guarded_main("static_sparse_matmul", [&] {
    const Parsed parsed = parse_arguments(
        as_run(argc, argv), "static_sparse_matmul",
        "Multiplies a sparse matrix whose pattern stays by a dense one on a modelled tile machine: "
        "tessera run --static, with the names of PopLibs' program: --m, --k, --n, --block-length, "
        "--available-memory-proportion.");
    if (parsed.exit) return *parsed.exit;
    return run_and_print(parsed.arguments, "static_sparse_matmul");
  });
}
