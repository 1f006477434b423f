#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/distributed/communicator.hpp"

namespace tessera::distributed::internal {

// Some of the ranks of a communicator, numbered from 0 in the order of a list. All members make one
// with the same list; other ranks take no part in its calls. Its timeout and its messages are those
// of the communicator of all ranks, which must outlive it and counts the traffic as well.
class SubRanks : public Communicator {
 public:
  // `members` are different ranks, of which the caller is one.
  SubRanks(Communicator& all, std::vector<int> members);

  int number(int rank) const override { return all_.number(members_[std::size_t(rank)]); }
  void abort(int exit_code, const std::string& message) noexcept override {
    all_.abort(exit_code, message);
  }

 protected:
  std::unique_ptr<Pending> begin(std::string_view what, std::span<const SendPiece> sends,
                                 std::span<const ReceivePiece> receives) override;

 private:
  Communicator& all_;
  std::vector<int> members_;
};

}  // namespace tessera::distributed::internal
