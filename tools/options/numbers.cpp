#include "tessera/tools/options/numbers.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/printable.hpp"

namespace tessera::tools {
namespace {

// Returns the number if the whole text is one.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string complaint(const std::string& text, const std::string& range) {
  constexpr std::size_t kLongest = 40;
  return fmt::format("the value is {}{}; it must be {}", printable(text.substr(0, kLongest)),
                     text.size() > kLongest ? "..." : "", range);
}

}  // namespace

CLI::Option* require_whole(CLI::Option* option, std::int64_t least, std::int64_t most) {
  const std::string range = fmt::format("{}..{}", least, most);
  const auto check = [=](std::string& text) {
    const auto number = number_in<std::int64_t>(text);
    if (!number || *number < least || *number > most)
      return complaint(text, "a whole number in " + range);
    text = std::to_string(*number);  // without leading zeros, which would make it octal
    return std::string();
  };
  return option->transform(CLI::Validator(check, range));
}

CLI::Option* require_number(CLI::Option* option, double least, double most) {
  const bool is_bounded = most < std::numeric_limits<double>::max();
  const std::string range =
      is_bounded ? fmt::format("{}..{}", least, most) : fmt::format("at least {}", least);
  const auto check = [=](std::string& text) {
    const auto number = number_in<double>(text);
    const bool is_good = number && std::isfinite(*number) && *number >= least && *number <= most;
    return is_good ? std::string()
                   : complaint(text, (is_bounded ? "a number in " : "a number of ") + range);
  };
  return option->check(CLI::Validator(check, range));
}

CLI::Option* require_seed(CLI::Option* option) {
  constexpr const char* kRange = "0..2^64 - 1";
  const auto check = [](std::string& text) {
    const auto number = number_in<std::uint64_t>(text);
    if (!number) return complaint(text, std::string("a whole number in ") + kRange);
    text = std::to_string(*number);
    return std::string();
  };
  return option->transform(CLI::Validator(check, kRange));
}

}  // namespace tessera::tools
