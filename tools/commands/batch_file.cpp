#include "tessera/tools/commands/batch_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/tools/options/command_line.hpp"
#include "tessera/tools/options/inputs.hpp"

namespace tessera::tools {
namespace {

constexpr int kDeepestBatch = 8;
// Limits of a batch with the files that it includes. A file of a few kilobytes can include others
// so often that they would take all memory.
constexpr std::int64_t kMostLines = std::int64_t{1} << 20, kMostWordsInAll = std::int64_t{1} << 21;

using Words = std::vector<std::string>;

std::string option_name(const std::string& word) { return word.substr(0, word.find('=')); }

// Returns `words`, preceded by the options of `defaults` that `words` does not give itself.
Words with_defaults(const Words& defaults, const Words& words) {
  Words all;
  std::set<std::string> given;
  for (const std::string& word : words) given.insert(option_name(word));
  bool is_kept = true;
  for (const std::string& word : defaults) {
    if (word.starts_with("-")) is_kept = !given.contains(option_name(word));
    if (is_kept) all.push_back(word);
  }
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// Reads files line by line, with the files that they include.
class BatchReader {
 public:
  void add_file(const std::string& path, int depth) {
    if (depth == kDeepestBatch)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: problem files may include other files at most {} levels deep",
                              path, kDeepestBatch));
    check_limits(path);  // an empty file is a line, too: others may include it often
    std::istringstream lines(load_text(path));
    std::int64_t number = 0;
    for (std::string line; std::getline(lines, line); check_limits(path))
      add_line(split_words(line, fmt::format("{}:{}", path, ++number)), path, depth);
  }

  std::vector<Words> problems;

 private:
  void check_limits(const std::string& path) {
    ++lines_;
    if (lines_ > kMostLines || words_ > kMostWordsInAll)
      throw Error(ErrorCode::BadInput,
                  fmt::format("{}: problem files may have at most {} lines and {} words together, "
                              "each as often as it is included; split them",
                              path, kMostLines, kMostWordsInAll));
  }
  void add_line(const Words& words, const std::string& path, int depth) {
    const auto is_setting = [](const std::string& word) {
      return word == "--reset" || option_name(word) == "--batch";
    };
    if (std::any_of(words.begin(), words.end(), is_setting))
      set(words, path, depth);
    else if (!words.empty())
      words_ += std::ssize(problems.emplace_back(with_defaults(defaults_, words)));
  }

  // Options before a --batch on the same line already apply to the included file.
  void set(const Words& words, const std::string& path, int depth) {
    Words options;
    const auto hold = [&] {
      defaults_ = with_defaults(defaults_, std::exchange(options, {}));
      // Every line of problems takes them again.
      words_ += std::ssize(defaults_);
    };
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--reset") {
        options.clear(), defaults_.clear();
        continue;
      }
      if (option_name(words[i]) != "--batch") {
        options.push_back(words[i]);
        continue;
      }
      hold();
      const std::size_t equals = words[i].find('=');
      if (equals == std::string::npos && i + 1 == words.size())
        throw Error(ErrorCode::BadInput, path + ": --batch needs a file name");
      const std::string file =
          equals == std::string::npos ? words[++i] : words[i].substr(equals + 1);
      add_file((std::filesystem::path(path).parent_path() / file).string(), depth + 1);
    }
    hold();
  }

  Words defaults_;
  std::int64_t lines_ = 0, words_ = 0;
};

}  // namespace

std::vector<std::vector<std::string>> read_batch(const std::string& path) {
  BatchReader reader;
  reader.add_file(path, 0);
  return std::move(reader.problems);
}

std::string repro_line(const std::vector<std::string>& words) {
  std::string line = "sparse_fc_layer";
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return std::isalnum(c) || std::strchr("-_=./:,@+%", c) != nullptr;
    });
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += is_plain ? " " + word : " '" + quoted + "'";
  }
  return line;
}

}  // namespace tessera::tools
