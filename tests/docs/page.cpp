#include "tessera/tests/docs/page.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tessera/tests/support/process.hpp"

namespace tessera::test {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream rest(line.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) {
    cell.erase(std::remove(cell.begin(), cell.end(), '`'), cell.end());
    const std::size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

}  // namespace

std::vector<std::string> pages() {
  std::vector<std::string> found = {"README.md"};
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TESSERA_SOURCE_DIR) + "/docs"))
    if (entry.path().extension() == ".md")
      found.push_back("docs/" + entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

std::string page_text(const std::string& path) {
  return read_file(std::string(TESSERA_SOURCE_DIR) + "/" + path);
}

std::vector<std::string> blocks(const std::string& page, const std::string& language) {
  std::vector<std::string> found;
  const std::string open = "```" + language + "\n";
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    at += open.size();
    const std::size_t end = page.find("```", at);
    found.push_back(page.substr(at, end - at));
    at = end;
  }
  return found;
}

std::vector<std::vector<std::string>> table_rows(const std::string& page,
                                                 const std::string& first) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(page);
  bool inside = false, heading = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind('|', 0) != 0) {
      inside = false;
      heading = true;
      continue;
    }
    const auto cells = cells_of(line);
    if (heading) inside = cells[0] == first;
    heading = false;
    if (inside && cells[0] != first && cells[0].rfind("---", 0) != 0) rows.push_back(cells);
  }
  return rows;
}

}  // namespace tessera::test
