#pragma once

#include <string>
#include <vector>

namespace tessera::test {

// The pages whose quoted commands and figures are checked: README.md, tools/README.md and all of
// docs/, as paths from the root of the tree.
std::vector<std::string> pages();

// The text of a file of the tree.
std::string page_text(const std::string& path);

// The text of the fenced blocks of one language, in order.
std::vector<std::string> blocks(const std::string& page, const std::string& language);

// The cells of the rows of every table of a page whose first heading is `first`, without headings;
// marks of code (`) are taken off.
std::vector<std::vector<std::string>> table_rows(const std::string& page, const std::string& first);

}  // namespace tessera::test
