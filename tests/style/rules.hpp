#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tessera/tests/style/source_tree.hpp"

namespace tessera::style {

// Maps a folder (or file) to the folders and single files that it may include; kEverything allows
// all. The longest key that holds a path decides. A folder may always include itself.
using Arrows = std::map<std::string, std::set<std::string>>;
inline constexpr const char* kEverything = "*";

// Maps a path to the reason why the file may be longer than the limit.
using LongFiles = std::map<std::string, std::string>;

// A rule returns one sentence with the place for each breach, and nothing if there is none.
using Complaints = std::vector<std::string>;

// Returns the longest key of `arrows` that is `path` or a folder above it; empty if there is none.
std::string owner_of(const std::string& path, const Arrows& arrows);

// Every include of a project file is an arrow of the table, and every file has a row in it.
Complaints check_arrows(const SourceFile& file, const Arrows& arrows);

// Project files are included as "tessera/...", never through "..".
Complaints check_include_form(const SourceFile& file);

// Headers of internal/ are included from their own folder, from below it and from tests/ only.
Complaints check_internal(const SourceFile& file);

// A header that other folders may include names no foreign library.
Complaints check_foreign(const SourceFile& file);

// A source includes the public header of its own name, if `files` has one, before all others, which
// shows that the header compiles alone.
Complaints check_own_header(const SourceFile& file, const std::vector<SourceFile>& files);

Complaints check_pragma_once(const SourceFile& file);

// Every namespace that a file opens is that of its folder, tessera::folder, or a part of it. None
// is inline, because tools that read sources without a compiler miss the contents of inline
// namespaces.
Complaints check_namespaces(const SourceFile& file, const Arrows& arrows);

// No source distinguishes phases of a run or terms of a cost by their text, because they are enums.
// Tests may, since they compare printed text.
Complaints check_text_keys(const SourceFile& file);

// No line names a folder of somebody's computer.
Complaints check_machine_paths(const SourceFile& file);

// No comment begins with a fragment such as "Of the cell" or "What is left": a comment is a
// sentence with a subject. A question is one.
Complaints check_comment_openings(const SourceFile& file);

// C++ files have at most 500 lines; exceptions must exist and be needed.
Complaints check_length(const std::vector<SourceFile>& files, const LongFiles& exceptions);

// The README.md of `folder` exists and names every public header of the folder.
Complaints check_page(const std::string& folder, const std::vector<SourceFile>& files,
                      const Arrows& arrows);

}  // namespace tessera::style
