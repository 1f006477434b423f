#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tessera/tests/style/source_tree.hpp"

namespace tessera::style {

// Folder (or file) -> the folders and single files it may include; kEverything allows all. The
// longest key that holds a path decides. A folder always sees itself.
using Arrows = std::map<std::string, std::set<std::string>>;
inline constexpr const char* kEverything = "*";

// Path -> why the file may be longer than the limit.
using LongFiles = std::map<std::string, std::string>;

// A rule returns one sentence for each breach, with the place; none when all is well.
using Complaints = std::vector<std::string>;

// Longest key of `arrows` that is `path` or a folder above it; empty when there is none.
std::string owner_of(const std::string& path, const Arrows& arrows);

// Every include of a file of ours is an arrow of the table, and every file has a row in it.
Complaints check_arrows(const SourceFile& file, const Arrows& arrows);

// Our files are included as "tessera/...", never through "..".
Complaints check_include_form(const SourceFile& file);

// internal/ is included from its own folder, from below it and from tests/ only.
Complaints check_internal(const SourceFile& file);

// A header that other folders may include names no foreign library.
Complaints check_foreign(const SourceFile& file);

// A source includes the public header of its own name, if `files` has one, before all others: so it
// is shown that the header compiles alone.
Complaints check_own_header(const SourceFile& file, const std::vector<SourceFile>& files);

Complaints check_pragma_once(const SourceFile& file);

// Every namespace that a file opens is that of its folder, tessera::folder or a part of it, and
// none is inline: tools that read sources without a compiler lose sight of what is in one.
Complaints check_namespaces(const SourceFile& file, const Arrows& arrows);

// No source tells phases of a run or terms of a cost apart by their text: they are enums. Tests
// may, as they compare what is printed.
Complaints check_text_keys(const SourceFile& file);

// No line names a folder of somebody's computer.
Complaints check_machine_paths(const SourceFile& file);

// C++ files end within 500 lines; exceptions must exist and be needed.
Complaints check_length(const std::vector<SourceFile>& files, const LongFiles& exceptions);

// README.md of `folder` is there and names every public header that belongs to the folder.
Complaints check_page(const std::string& folder, const std::vector<SourceFile>& files,
                      const Arrows& arrows);

}  // namespace tessera::style
