#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/io/archive.hpp"
#include "tessera/io/internal/archive_seal.hpp"
#include "tessera/runtime/saved_weights.hpp"

// States that are saved and read again, and files that are changed under a right checksum.
namespace tessera::test {

using runtime::describe;  // of encoded weights, whose type is another namespace's

// Returns the file of a state that has a function describe(archive, state).
template <class State>
std::string saved_file(State state, const std::string& kind = "a state") {
  io::Archive archive(kind);
  describe(archive, state);
  return archive.bytes();
}

// Returns the state of such a file.
template <class State>
State state_of(std::string_view file, std::string_view name, std::string_view kind = "a state") {
  State state;
  const auto archive = io::Archive::of_bytes(file, name, kind);
  describe(*archive, state);
  archive->finish();
  return state;
}

// Returns a file with the checksum that it should have.
inline std::string sealed(std::string file) {
  io::internal::seal_archive(file);
  return file;
}

// Returns a file in which a text of it was replaced by one of the same length, with a right
// checksum; an empty text if it is not there.
inline std::string with_text(std::string file, std::string_view old, std::string_view now) {
  const std::size_t at = file.find(old);
  if (at == file.npos || old.size() != now.size()) return {};
  return sealed(file.replace(at, old.size(), now));
}

}  // namespace tessera::test
