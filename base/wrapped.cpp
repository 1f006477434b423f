#include "tessera/base/wrapped.hpp"

#include <sstream>

namespace tessera {

std::string wrapped(const std::string& text, std::size_t indented, std::size_t flush) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = line.starts_with("  ") ? indented : flush;
    while (line.size() > kColumns) {
      const std::size_t space = line.rfind(' ', kColumns);
      if (space == line.npos || space <= indent) break;
      result += line.substr(0, space) + "\n";
      line = std::string(indent, ' ') + line.substr(space + 1);
    }
    result += line + "\n";
  }
  return result;
}

}  // namespace tessera
