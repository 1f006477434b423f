#pragma once

#include <optional>
#include <string>

// Texts under keys in a folder that any number of processes share. Neither a key nor a text has a
// line break. A file has three lines: the key, the text, and a checksum of both.
namespace tessera::planner::internal {

// Makes the folder if it is not there. Error{InvalidArgument} names it when that fails.
void make_store(const std::string& folder);

// The text under the key; nothing when there is no file, or one that is not whole, was changed or
// belongs to another key.
std::optional<std::string> load(const std::string& folder, const std::string& key);

// Puts the text under the key: under a name of this process's own first, then renamed, so that
// readers see the old file or the whole new one. Not forced to disk: what a crash cuts short is
// found out by load. Error{InvalidArgument} with path and reason when it cannot be written.
void store(const std::string& folder, const std::string& key, const std::string& text);

// The file of a key: keys of one hash share it, and the last one stored is there.
std::string store_path(const std::string& folder, const std::string& key);

}  // namespace tessera::planner::internal
