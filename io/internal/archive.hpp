#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::io::internal {

// The files of a zip archive in their order, each as its name and its content.
using Members = std::vector<std::pair<std::string, std::string>>;

// Returns true if the library was built with libzip.
bool can_unpack();

// Unpacks an archive. Memory grows with the unpacked bytes and not with the lengths that a header
// declares. Throws Error{BadInput} "<name>: ..." if the bytes are no archive, or if it is damaged,
// encrypted or contains a name twice. Throws Error{LimitExceeded} for more than 4 GiB in all, or
// for a file of more than 1100 times its packed length.
Members unpack(std::string_view bytes, std::string_view name);

// Returns a deflated archive with a fixed date: equal members give equal bytes.
std::string pack(const Members& members);

}  // namespace tessera::io::internal
