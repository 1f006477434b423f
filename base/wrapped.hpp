#pragma once

#include <cstddef>
#include <string>

namespace tessera {

// The width of the texts that programs print for people.
inline constexpr std::size_t kColumns = 100;

// Returns the text with lines of at most kColumns columns. A longer line is broken between words;
// it continues `indented` columns from the left if it begins with two spaces, else `flush` columns.
// A line without a space to break at is not changed.
std::string wrapped(const std::string& text, std::size_t indented, std::size_t flush);

}  // namespace tessera
