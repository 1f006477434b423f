#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::distributed::internal {

// Who waits, for what, and how long.
struct Waiting {
  std::string_view what;
  int rank = 0, size = 1;
  std::chrono::milliseconds timeout{};
};

// Returns the message of a rank that has waited too long for another one, which should have sent
// (`receives`) or received a piece.
std::string still_text(const Waiting& waiting, int other, bool receives);

// Returns the message for a piece of another size than the receiver expects.
std::string size_text(const Waiting& waiting, int from, std::size_t expected, std::size_t sent);

}  // namespace tessera::distributed::internal
