#include "tessera/distributed/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tessera/base/stopwatch.hpp"
#include "tessera/distributed/agreement.hpp"

namespace tessera::distributed {
void Transfer::wait_received() {
  if (pending_ == nullptr) return;
  const Stopwatch waiting;
  pending_->wait_received();
  ranks_->traffic_.wait_seconds += waiting.seconds();
  for (std::size_t i = 0; i < checked_.size(); ++i)
    if (Digest().add(std::span<const std::byte>(checked_[i].bytes)).value() != sums_[i])
      throw Error(ErrorCode::CheckFailed,
                  fmt::format("{} have changed on their way from rank {} to rank {}", what_,
                              ranks_->number(checked_[i].from), ranks_->number(ranks_->rank())));
  checked_.clear();
}

void Transfer::wait_sent() {
  if (pending_ == nullptr) return;
  const Stopwatch waiting;
  pending_->wait_sent();
  ranks_->traffic_.wait_seconds += waiting.seconds();
  pending_.reset();
}

namespace internal {

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
      "same layer",
      waiting.rank, waiting.size, waiting.what, from, sent, expected);
}

}  // namespace internal

void Communicator::check_other(int other) const {
  if (other >= 0 && other < size() && other != rank()) return;
  throw_invalid(fmt::format("rank {} has no messages with rank {}; the other ranks are 0 to {}",
                            rank(), other, size() - 1));
}

Transfer Communicator::start(std::string_view what, std::span<const SendPiece> sends,
                             std::span<const ReceivePiece> receives, bool is_checked) {
  Transfer transfer(*this, what);
  std::vector<SendPiece> out;
  for (const SendPiece& piece : sends) {
    check_other(piece.to);
    if (!piece.bytes.empty()) out.push_back(piece);
  }
  std::vector<ReceivePiece> in;
  for (const ReceivePiece& piece : receives) {
    check_other(piece.from);
    if (!piece.bytes.empty()) in.push_back(piece);
  }
  if (is_checked) {
    transfer.checked_ = in;
    transfer.sums_.resize(in.size() + out.size());
    std::uint64_t* sum = transfer.sums_.data();
    for (const ReceivePiece& piece : transfer.checked_)
      in.push_back({piece.from, std::as_writable_bytes(std::span(sum++, 1))});
    for (std::size_t i = 0, count = out.size(); i < count; ++i, ++sum) {
      const bool is_repeated = i > 0 && out[i].bytes.data() == out[i - 1].bytes.data() &&
                               out[i].bytes.size() == out[i - 1].bytes.size();
      *sum = is_repeated ? sum[-1] : Digest().add(out[i].bytes).value();
      out.push_back({out[i].to, std::as_bytes(std::span(sum, 1))});
    }
  }
  for (const ReceivePiece& piece : in) traffic_.received_bytes += std::ssize(piece.bytes);
  transfer.pending_ = begin(what, out, in);
  return transfer;
}

// In round i every rank hears from the one 2^i below it, so after all rounds it has heard, directly
// or not, from every rank.
void Communicator::barrier(std::string_view what) {
  const std::array<std::byte, 1> sent{};
  std::array<std::byte, 1> received{};
  for (int distance = 1; distance < size(); distance *= 2) {
    const SendPiece send{(rank() + distance) % size(), sent};
    const ReceivePiece receive{(rank() + size() - distance) % size(), received};
    exchange(what, {send}, {receive});
  }
}

SubRanks::SubRanks(Communicator& all, std::vector<int> members)
    : Communicator(int(std::ranges::find(members, all.rank()) - members.begin()),
                   int(members.size()), all.timeout()),
      all_(all),
      members_(std::move(members)) {
  TESSERA_ASSERT(rank() < size());
}

std::unique_ptr<internal::Pending> SubRanks::begin(std::string_view what,
                                                   std::span<const SendPiece> sends,
                                                   std::span<const ReceivePiece> receives) {
  std::vector<SendPiece> out(sends.begin(), sends.end());
  for (SendPiece& piece : out) piece.to = members_[std::size_t(piece.to)];
  std::vector<ReceivePiece> in(receives.begin(), receives.end());
  for (ReceivePiece& piece : in) piece.from = members_[std::size_t(piece.from)];
  return std::make_unique<Transfer>(all_.start(what, out, in));
}

}  // namespace tessera::distributed
