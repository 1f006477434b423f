#include "tessera/distributed/internal/sub_ranks.hpp"

#include <algorithm>
#include <utility>

namespace tessera::distributed::internal {

SubRanks::SubRanks(Communicator& all, std::vector<int> members)
    : Communicator(int(std::ranges::find(members, all.rank()) - members.begin()),
                   int(members.size()), all.timeout()),
      all_(all),
      members_(std::move(members)) {
  TESSERA_ASSERT(rank() < size());
}

std::unique_ptr<Pending> SubRanks::begin(std::string_view what, std::span<const SendPiece> sends,
                                         std::span<const ReceivePiece> receives) {
  std::vector<SendPiece> out(sends.begin(), sends.end());
  for (SendPiece& piece : out) piece.to = members_[std::size_t(piece.to)];
  std::vector<ReceivePiece> in(receives.begin(), receives.end());
  for (ReceivePiece& piece : in) piece.from = members_[std::size_t(piece.from)];
  return std::make_unique<Transfer>(all_.start(what, out, in));
}

}  // namespace tessera::distributed::internal
