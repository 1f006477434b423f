#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/distributed/communicator.hpp"

namespace tessera::distributed::internal {

// Returns a checksum of bytes that travel.
std::uint64_t checksum(std::span<const std::byte> bytes);

// Does Communicator::exchange. If `is_checked`, a checksum travels with every piece, and pieces
// that have changed on their way are Error{CheckFailed}, which names both ranks.
void exchange_pieces(Communicator& ranks, std::string_view what, std::vector<SendPiece> sends,
                     std::vector<ReceivePiece> receives, bool is_checked);

}  // namespace tessera::distributed::internal
