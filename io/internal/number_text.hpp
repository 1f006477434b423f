#pragma once

#include <charconv>
#include <string>

namespace tessera::io::internal {

// Appends a number and a separator. std::to_chars writes the shortest text that reads back as the
// same number, in any locale.
template <class Number>
void append_number(std::string& text, Number number, char separator) {
  char buffer[32];  // the longest number, -2.2250738585072014e-308, takes 24 bytes
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer) - 1, number).ptr;
  *end = separator;
  text.append(buffer, end + 1);
}

}  // namespace tessera::io::internal
