#include "tessera/distributed/thread_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera::distributed {
namespace {

// The state of a piece between the two ranks. The receiver copies it.
enum class PieceState { Sent, Copying, Received };

struct Piece {
  std::span<const std::byte> bytes;
  PieceState state = PieceState::Sent;
};

// From, to, and the number of the piece among those between the two.
using PieceKey = std::tuple<int, int, std::int64_t>;

// The state that the ranks share. `mutex` guards everything; pieces are copied outside of it.
struct Group {
  explicit Group(int size_of_group) : size(size_of_group) {}

  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<PieceKey, Piece> pieces;
  std::optional<std::string> failure;  // of the first rank that failed
  int failed_rank = -1;
  std::exception_ptr exception;  // that the rank threw
};

class ThreadTransfer : public internal::Pending {
 public:
  ThreadTransfer(Group& group, internal::Waiting waiting) : group_(group), waiting_(waiting) {}

  // Takes back what nobody has received: its memory may be gone after this.
  ~ThreadTransfer() override {
    std::unique_lock lock(group_.mutex);
    for (const PieceKey& key : sends_) {
      group_.changed.wait(lock, [&] {
        const auto found = group_.pieces.find(key);
        return found == group_.pieces.end() || found->second.state != PieceState::Copying;
      });
      group_.pieces.erase(key);
    }
  }

  void add_send(const PieceKey& key) { sends_.push_back(key); }
  void add_receive(const PieceKey& key, std::span<std::byte> bytes) {
    receives_.emplace_back(key, bytes);
  }

  void wait_received() override {
    for (; !receives_.empty(); receives_.pop_back()) receive(receives_.back());
  }

  void wait_sent() override {
    std::unique_lock lock(group_.mutex);
    for (; !sends_.empty(); sends_.pop_back()) {
      const PieceKey& key = sends_.back();
      wait_for(lock, std::get<1>(key), /*receives=*/false,
               [&] { return group_.pieces.at(key).state == PieceState::Received; });
      group_.pieces.erase(key);
    }
  }

 private:
  using Receive = std::pair<PieceKey, std::span<std::byte>>;

  template <class Done>
  void wait_for(std::unique_lock<std::mutex>& lock, int other, bool receives, const Done& done) {
    const auto over = [&] { return done() || group_.failure.has_value(); };
    if (!group_.changed.wait_for(lock, waiting_.timeout, over))
      throw StandsStill(internal::still_text(waiting_, other, receives));
    if (!done()) throw OtherRankFailed(*group_.failure);
  }

  void receive(const Receive& wanted) {
    const auto& [key, bytes] = wanted;
    std::unique_lock lock(group_.mutex);
    wait_for(lock, std::get<0>(key), /*receives=*/true,
             [&, &k = key] { return group_.pieces.contains(k); });
    Piece& piece = group_.pieces.at(key);
    if (piece.bytes.size() != bytes.size())
      throw Error(ErrorCode::Internal, internal::size_text(waiting_, std::get<0>(key), bytes.size(),
                                                           piece.bytes.size()));
    piece.state = PieceState::Copying;
    lock.unlock();
    std::copy(piece.bytes.begin(), piece.bytes.end(), bytes.begin());
    lock.lock();
    piece.state = PieceState::Received;
    lock.unlock();
    group_.changed.notify_all();
  }

  Group& group_;
  internal::Waiting waiting_;
  std::vector<PieceKey> sends_;
  std::vector<Receive> receives_;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(Group& group, int rank, std::chrono::milliseconds timeout)
      : Communicator(rank, group.size, timeout), group_(group) {}

  void abort(int, const std::string& message) noexcept override {
    const std::lock_guard lock(group_.mutex);
    if (!group_.failure) {
      group_.failure = fmt::format("rank {} failed: {}", rank(), message);
      group_.failed_rank = rank();
    }
    group_.changed.notify_all();
  }

 protected:
  std::unique_ptr<internal::Pending> begin(std::string_view what, std::span<const SendPiece> sends,
                                           std::span<const ReceivePiece> receives) override {
    auto transfer = std::make_unique<ThreadTransfer>(
        group_, internal::Waiting{what, rank(), size(), timeout()});
    {
      const std::lock_guard lock(group_.mutex);
      for (const SendPiece& piece : sends) {
        const PieceKey key{rank(), piece.to, sent_[piece.to]++};
        group_.pieces.emplace(key, Piece{piece.bytes});
        transfer->add_send(key);
      }
    }
    group_.changed.notify_all();
    for (const ReceivePiece& piece : receives)
      transfer->add_receive({piece.from, rank(), received_[piece.from]++}, piece.bytes);
    return transfer;
  }

 private:
  Group& group_;
  std::map<int, std::int64_t> sent_, received_;  // pieces so far, by the other rank
};

// Throws the exception again, an Error with the number of its rank.
[[noreturn]] void rethrow(const std::exception_ptr& failure, int rank, int size) {
  try {
    std::rethrow_exception(failure);
  } catch (const StandsStill&) {
    throw;  // names its rank
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("rank {} of {}: {}", rank, size, error.what()));
  }
}

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator&)>& body,
               std::chrono::milliseconds timeout) {
  if (ranks < 1) throw_invalid(fmt::format("there cannot be {} ranks; 1 or more can", ranks));
  Group group(ranks);
  const auto run = [&](int rank) {
    ThreadCommunicator communicator(group, rank, timeout);
    const auto fail = [&](const char* what) {
      communicator.abort(0, what);
      const std::lock_guard lock(group.mutex);
      if (group.failed_rank == rank) group.exception = std::current_exception();
    };
    try {
      body(communicator);
    } catch (const std::exception& error) {
      fail(error.what());
    } catch (...) {
      fail("an exception of unknown type");
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(run, rank);
    run(0);
  }
  if (group.exception) rethrow(group.exception, group.failed_rank, ranks);
  if (group.failure) throw OtherRankFailed(*group.failure);
}

}  // namespace tessera::distributed
