#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tessera/tests/style/rules.hpp"
#include "tessera/tests/style/source_tree.hpp"

namespace tessera::style {

// Maps a public header that no program uses to the reason why it stays.
using UnusedHeaders = std::map<std::string, std::string>;

// Returns the headers in the HEADERS lists of tessera_module, in all CMakeLists.txt.
std::set<std::string> public_headers(const std::vector<SourceFile>& files);

// Returns what a user can run: the sources of tools/ and python/src/, and the examples that the
// table of examples/README.md lists.
std::set<std::string> programs(const std::vector<SourceFile>& files);

// Returns the files that `roots` reach through includes. A header that is reached leads to its
// source, which has the same name, beside it or beside internal/, and to the sources of its folder
// that have no header of their own and implement a part of it.
std::set<std::string> reached_from(const std::set<std::string>& roots,
                                   const std::vector<SourceFile>& files);

// A capability enters with its caller: programs() reach every public header. Exceptions must exist
// and be needed.
Complaints check_headers_used(const std::vector<SourceFile>& files,
                              const UnusedHeaders& exceptions);

}  // namespace tessera::style
