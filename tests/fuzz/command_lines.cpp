#include <algorithm>
#include <string>
#include <vector>

#include "tessera/planner/network_json.hpp"
#include "tessera/tests/fuzz/input_bytes.hpp"
#include "tessera/tests/fuzz/targets.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/layer_arguments.hpp"
#include "tessera/tools/options/layer_keys.hpp"
#include "tessera/tools/run/arguments.hpp"

namespace tessera::fuzz {
namespace {

// The input, cut at zero bytes. Words of one letter up to "Z" become long options.
std::vector<std::string> words_of(Input input) {
  constexpr const char* kOptions[] = {
      "--input-size",     "--output-size",      "--density",       "--batch-size",
      "--block-size",     "--data-type",        "--tiles-per-ipu", "--machine",
      "--single-phase",   "--plan-constraints", "--inject",        "--pattern",
      "--matmul-options", "--max-ms-per-prb",   "--threads",       "--seed",
      "--partials-type",  "--plan-only",        "--self-check",    "--groups"};
  std::vector<std::string> words = {"sparse_fc_layer"};
  std::string word;
  for (const std::uint8_t letter : input) {
    if (letter != 0) {
      word.push_back(char(letter));
    } else {
      const bool is_option = word.size() == 1 && word[0] >= 'A' && word[0] < 'A' + 20;
      words.push_back(is_option ? kOptions[std::size_t(word[0] - 'A')] : word);
      word.clear();
    }
  }
  words.push_back(word);
  return words;
}

// Words that would read another file of this computer, or all of a device.
bool names_a_file(const std::string& word) {
  return word.starts_with("@") || word.find('/') != std::string::npos ||
         word.starts_with("--config") || word.starts_with("--gen");
}

}  // namespace

void command_line(Input input) {
  const std::vector<std::string> words = words_of(input);
  if (std::any_of(words.begin(), words.end(), names_a_file)) return;
  accepts([&] {
    const tools::Parsed parsed = tools::parse_arguments(words);
    if (parsed.exit) {
      require(*parsed.exit == 0 || *parsed.exit == 2, "parsing ends with the exit code 0 or 2");
      return;
    }
    const tools::LayerArguments layer = tools::with_layer_keys(parsed.arguments);
    check_problem(tools::problem_of(layer));
    tools::make_options(layer, {});
  });
}

void response_file(Input input) {
  accepts([&] {
    for (const std::string& word :
         tools::split_words(std::string(InputBytes(input).rest()), "input"))
      require(word.size() <= input.size(), "a word is no longer than its file");
  });
}

void layer_keys(Input input) {
  std::string text(InputBytes(input).rest());
  const std::string given = text;
  accepts([&] {
    const tools::LayerKeys keys = tools::take_layer_keys(text, "input");
    if (!keys.grad_a && !keys.grad_w && !keys.partials_type)
      require(text == given, "a text without the keys is not changed");
  });
}

// A network that is read is one that can be planned: its parts fit together.
void network_json(Input input) {
  accepts([&] {
    const planner::NetworkFile file = planner::parse_network(InputBytes(input).rest(), "input");
    planner::check(file.spec);
    require(file.weights.size() == file.spec.layers.size(), "a file of weights for each layer");
  });
}

}  // namespace tessera::fuzz
