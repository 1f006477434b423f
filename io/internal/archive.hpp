#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::io::internal {

// A zip archive's files by name, in order. Whether the library was built with libzip.
using Members = std::vector<std::pair<std::string, std::string>>;
bool can_unpack();

// Unpacks as the bytes come, never what a header declares. Error{BadInput} "<name>: ..." for what
// is no archive, is damaged, encrypted or holds a name twice; Error{LimitExceeded} for more than 4
// GiB in all or 1100 times the packed length.
Members unpack(std::string_view bytes, std::string_view name);

// A deflated archive with a fixed date: the same members give the same bytes.
std::string pack(const Members& members);

}  // namespace tessera::io::internal
