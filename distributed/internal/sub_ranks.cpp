#include "tessera/distributed/internal/sub_ranks.hpp"

#include <set>
#include <utility>

namespace tessera::distributed::internal {
namespace {

class SubTransfer : public Pending {
 public:
  explicit SubTransfer(Transfer transfer) : transfer_(std::move(transfer)) {}
  void wait_received() override { transfer_.wait_received(); }
  void wait_sent() override { transfer_.wait(); }

 private:
  Transfer transfer_;
};

}  // namespace

SubRanks::SubRanks(Communicator& all, std::vector<int> members)
    : Communicator(all.timeout()), all_(all), members_(std::move(members)) {
  bool is_legal = std::set<int>(members_.begin(), members_.end()).size() == members_.size();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    is_legal = is_legal && members_[i] >= 0 && members_[i] < all.size();
    if (members_[i] == all.rank()) rank_ = int(i);
  }
  if (!is_legal || rank_ < 0)
    throw Error(ErrorCode::InvalidArgument,
                "some ranks among others: they must be different, and the caller one of them");
}

std::unique_ptr<Pending> SubRanks::begin(std::string_view what, std::span<const SendPiece> sends,
                                         std::span<const ReceivePiece> receives) {
  std::vector<SendPiece> out(sends.begin(), sends.end());
  for (SendPiece& piece : out) piece.to = members_[std::size_t(piece.to)];
  std::vector<ReceivePiece> in(receives.begin(), receives.end());
  for (ReceivePiece& piece : in) piece.from = members_[std::size_t(piece.from)];
  return std::make_unique<SubTransfer>(all_.start(what, out, in));
}

}  // namespace tessera::distributed::internal
