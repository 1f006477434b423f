#include "tessera/distributed/internal/still.hpp"

#include <fmt/format.h>

namespace tessera::distributed::internal {

std::string still_text(const Waiting& waiting, int other, bool receives) {
  const double seconds = std::chrono::duration<double>(waiting.timeout).count();
  return fmt::format(
      "rank {} of {}: {}: rank {} has {} for {} s; it has stopped, is in another phase or needs a "
      "longer timeout",
      waiting.rank, waiting.size, waiting.what, other, receives ? "sent nothing" : "taken nothing",
      seconds);
}

std::string size_text(const Waiting& waiting, int from, std::size_t expected, std::size_t sent) {
  return fmt::format(
      "rank {} of {}: {}: rank {} sent {} bytes, but {} were expected; the ranks do not run the "
      "same "
      "layer",
      waiting.rank, waiting.size, waiting.what, from, sent, expected);
}

}  // namespace tessera::distributed::internal
