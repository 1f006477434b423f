#include "tessera/distributed/communicator.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

namespace tessera::distributed {
namespace {

// Adds the time until it goes out of scope.
class AddTime {
 public:
  explicit AddTime(double& seconds) : seconds_(seconds) {}
  AddTime(const AddTime&) = delete;
  AddTime& operator=(const AddTime&) = delete;
  ~AddTime() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

void Transfer::wait_received() {
  if (pending_ == nullptr) return;
  const AddTime waiting(traffic_->wait_seconds);
  pending_->wait_received();
}

void Transfer::wait() {
  if (pending_ == nullptr) return;
  const AddTime waiting(traffic_->wait_seconds);
  pending_->wait_received();
  pending_->wait_sent();
  pending_.reset();
}

void Communicator::check_other(int other) const {
  if (other >= 0 && other < size() && other != rank()) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("rank {} has no messages with rank {}; the other ranks are 0 to {}",
                          rank(), other, size() - 1));
}

Transfer Communicator::start(std::string_view what, std::span<const SendPiece> sends,
                             std::span<const ReceivePiece> receives) {
  std::vector<SendPiece> out;
  for (const SendPiece& piece : sends) {
    check_other(piece.to);
    if (!piece.bytes.empty()) out.push_back(piece);
    traffic_.sent_bytes += std::ssize(piece.bytes);
  }
  std::vector<ReceivePiece> in;
  for (const ReceivePiece& piece : receives) {
    check_other(piece.from);
    if (!piece.bytes.empty()) in.push_back(piece);
    traffic_.received_bytes += std::ssize(piece.bytes);
  }
  return {begin(what, out, in), traffic_};
}

void Communicator::exchange(std::string_view what, std::span<const SendPiece> sends,
                            std::span<const ReceivePiece> receives) {
  start(what, sends, receives).wait();
}

// In round i every rank hears from the one 2^i below it, so after all rounds it has heard, directly
// or not, from every rank.
void Communicator::barrier(std::string_view what) {
  const std::array<std::byte, 1> sent{};
  std::array<std::byte, 1> received{};
  for (int distance = 1; distance < size(); distance *= 2) {
    const SendPiece send{(rank() + distance) % size(), sent};
    const ReceivePiece receive{(rank() + size() - distance) % size(), received};
    exchange(what, {&send, 1}, {&receive, 1});
  }
}

}  // namespace tessera::distributed
