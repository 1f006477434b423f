#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

// Options whose values have names.
namespace tessera::tools {

inline constexpr const char* kOffered = "offered: ";  // begins the name of a validator

// Lets completions offer these values for an option. Other values stay legal.
inline CLI::Option* offer_values(CLI::Option* option, const std::vector<std::string>& values) {
  std::string name = kOffered;
  for (const std::string& value : values) name += (&value == &values.front() ? "" : " ") + value;
  return option->check(CLI::Validator([](std::string&) { return std::string(); }, "", name));
}

// Returns the values that completions offer for an option, separated by spaces; empty: none.
inline std::string offered_values(CLI::Option& option) {
  const std::string start = kOffered;
  try {
    for (int i = 0;; ++i)
      if (const std::string& name = option.get_validator(i)->get_name(); name.starts_with(start))
        return name.substr(start.size());
  } catch (const CLI::OptionNotFound&) {
    return {};  // it has no more validators
  }
}

// The names of the values that take_one_of() has put in their places, by option and value.
inline std::map<std::string, std::string>& names_of_values(const CLI::Option* option) {
  static std::map<const CLI::Option*, std::map<std::string, std::string>> names;
  return names[option];
}

// Makes an option take one of the names, which become values, and lets completions offer them.
template <class Value>
CLI::Option* take_one_of(CLI::Option* option, const std::map<std::string, Value>& names) {
  std::vector<std::string> words;
  names_of_values(option).clear();
  for (const auto& [name, value] : names) {
    words.push_back(name);
    names_of_values(option)[CLI::detail::to_string(value)] = name;
  }
  return offer_values(option, words)->transform(CLI::CheckedTransformer(names).description(""));
}

}  // namespace tessera::tools
