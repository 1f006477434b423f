#include "tessera/distributed/internal/pieces.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::distributed::internal {

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

void exchange_pieces(Communicator& ranks, std::string_view what, std::vector<SendPiece> sends,
                     std::vector<ReceivePiece> receives, bool is_checked) {
  if (!is_checked) return ranks.exchange(what, sends, receives);
  const std::size_t sent = sends.size(), received = receives.size();
  std::vector<std::uint64_t> own(sent), sums(received);
  for (std::size_t i = 0; i < sent; ++i) {
    own[i] = checksum(sends[i].bytes);
    sends.push_back({sends[i].to, std::as_bytes(std::span(&own[i], 1))});
  }
  for (std::size_t i = 0; i < received; ++i)
    receives.push_back({receives[i].from, std::as_writable_bytes(std::span(&sums[i], 1))});
  ranks.exchange(what, sends, receives);
  for (std::size_t i = 0; i < received; ++i)
    if (checksum(receives[i].bytes) != sums[i])
      throw Error(ErrorCode::CheckFailed,
                  fmt::format("{} have changed on their way from rank {} to rank {}", what,
                              ranks.number(receives[i].from), ranks.number(ranks.rank())));
}

}  // namespace tessera::distributed::internal
