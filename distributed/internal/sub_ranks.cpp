#include "tessera/distributed/internal/sub_ranks.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace tessera::distributed::internal {
namespace {

// Returns the place of the caller among legal members.
int place_in(const std::vector<int>& members, const Communicator& all) {
  const auto own = std::ranges::find(members, all.rank());
  const auto is_rank = [&](int member) { return member >= 0 && member < all.size(); };
  if (own == members.end() || !std::ranges::all_of(members, is_rank) ||
      std::set<int>(members.begin(), members.end()).size() != members.size())
    throw Error(ErrorCode::InvalidArgument,
                "some ranks among others: they must be different, and the caller one of them");
  return int(own - members.begin());
}

}  // namespace

SubRanks::SubRanks(Communicator& all, std::vector<int> members)
    : Communicator(place_in(members, all), int(members.size()), all.timeout()),
      all_(all),
      members_(std::move(members)) {}

std::unique_ptr<Pending> SubRanks::begin(std::string_view what, std::span<const SendPiece> sends,
                                         std::span<const ReceivePiece> receives) {
  std::vector<SendPiece> out(sends.begin(), sends.end());
  for (SendPiece& piece : out) piece.to = members_[std::size_t(piece.to)];
  std::vector<ReceivePiece> in(receives.begin(), receives.end());
  for (ReceivePiece& piece : in) piece.from = members_[std::size_t(piece.from)];
  return std::make_unique<Transfer>(all_.start(what, out, in));
}

}  // namespace tessera::distributed::internal
