#include "tessera/distributed/communicator.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <utility>
#include <vector>

#include "tessera/base/stopwatch.hpp"

namespace tessera::distributed {
std::uint64_t checksum(std::span<const std::byte> bytes) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

void Transfer::wait_received() {
  if (pending_ == nullptr) return;
  const Stopwatch waiting;
  pending_->wait_received();
  traffic_->wait_seconds += waiting.seconds();
}

void Transfer::wait_sent() {
  if (pending_ == nullptr) return;
  const Stopwatch waiting;
  pending_->wait_sent();
  traffic_->wait_seconds += waiting.seconds();
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

void Communicator::exchange(std::string_view what, std::vector<SendPiece> sends,
                            std::vector<ReceivePiece> receives, bool is_checked) {
  if (!is_checked) return start(what, sends, receives).wait();
  const std::size_t sent = sends.size(), received = receives.size();
  std::vector<std::uint64_t> own(sent), sums(received);
  for (std::size_t i = 0; i < sent; ++i) {
    own[i] = checksum(sends[i].bytes);
    sends.push_back({sends[i].to, std::as_bytes(std::span(&own[i], 1))});
  }
  for (std::size_t i = 0; i < received; ++i)
    receives.push_back({receives[i].from, std::as_writable_bytes(std::span(&sums[i], 1))});
  start(what, sends, receives).wait();
  for (std::size_t i = 0; i < received; ++i)
    if (checksum(receives[i].bytes) != sums[i])
      throw Error(ErrorCode::CheckFailed,
                  fmt::format("{} have changed on their way from rank {} "
                              "to rank {}",
                              what, number(receives[i].from), number(rank())));
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

}  // namespace tessera::distributed
