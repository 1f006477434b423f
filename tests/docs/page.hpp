#pragma once

#include <string>
#include <vector>

namespace tessera::test {

// Returns the pages whose quoted commands and figures are checked, README.md and all of docs/, as
// paths from the root of the tree.
std::vector<std::string> pages();

// Returns the text of a file of the tree.
std::string page_text(const std::string& path);

// Returns the text of the fenced blocks of one language in their order.
std::vector<std::string> blocks(const std::string& page, const std::string& language);

// Returns the cells of every row, without headings, of the tables of a page whose first heading is
// `first`. Code marks (`) are removed.
std::vector<std::vector<std::string>> table_rows(const std::string& page, const std::string& first);

}  // namespace tessera::test
