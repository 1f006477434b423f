#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Throws Error{InvalidArgument} "<what> is "<name>"; it is a, b or c" with the legal names.
[[noreturn]] void throw_unknown_name(std::string_view name, std::string_view what,
                                     const std::vector<std::string>& legal);

// Returns the enumerator whose to_string() is `name`, of all that a caller may name. Throws
// Error{InvalidArgument}, which calls the text `what` and lists the names, if there is none.
// Example: named("max", {BlockScore::Sum, BlockScore::Max, BlockScore::Mean}, "pool")
template <class E>
E named(std::string_view name, std::initializer_list<E> all, std::string_view what) {
  std::vector<std::string> legal;
  for (const E one : all)
    if (legal.emplace_back(to_string(one)) == name) return one;
  throw_unknown_name(name, what, legal);
}

}  // namespace tessera
