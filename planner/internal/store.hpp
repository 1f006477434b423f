#pragma once

#include <optional>
#include <string>

// A store keeps texts by key in a folder that any number of processes may share. Neither a key nor
// a text may contain a line break. A file has three lines: the key, the text, and a checksum of
// both.
namespace tessera::planner::internal {

// Creates the folder if it does not exist. Throws Error{InvalidArgument} that names it if that
// fails.
void make_store(const std::string& folder);

// Returns the text of the key, or nullopt if there is no file or if the file is truncated, altered
// or of another key.
std::optional<std::string> load(const std::string& folder, const std::string& key);

// Stores the text of the key. Writes a file under a name that only this process uses and renames
// it, so that readers see either the old file or the complete new one. The file is not forced to
// disk; load() detects one that a crash truncated. Throws CannotWrite with the path and
// the reason if the file cannot be written.
void store(const std::string& folder, const std::string& key, const std::string& text);

// Returns the path of a key's file. Keys with the same hash share one file, which holds the key
// that was stored last.
std::string store_path(const std::string& folder, const std::string& key);

}  // namespace tessera::planner::internal
