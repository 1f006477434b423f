#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::distributed {

// Ranks are the processes (or threads) that compute one layer together, numbered from 0. They share
// no memory that they write, and talk through a Communicator.

// Bytes that go to another rank.
struct SendPiece {
  int to = 0;
  std::span<const std::byte> bytes;
};

// Memory for bytes that come from another rank.
struct ReceivePiece {
  int from = 0;
  std::span<std::byte> bytes;
};

// The traffic of one rank since its communicator was made. Bytes are those of pieces; bytes that a
// network adds to them are not counted.
struct Traffic {
  std::int64_t received_bytes = 0;
  double wait_seconds = 0;  // in waits for transfers, by the clock

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// The error of a rank that has waited for another one longer than its timeout. The message names
// the rank, what it was doing, and the rank that it waited for.
class StandsStill : public Error {
 public:
  explicit StandsStill(const std::string& message) : Error(ErrorCode::Internal, message) {}
};

// The error that ends a rank because another one has failed. It is thrown between ranks that are
// threads; ranks that are processes are ended by their launcher.
class OtherRankFailed : public Error {
 public:
  explicit OtherRankFailed(const std::string& message) : Error(ErrorCode::Internal, message) {}
};

namespace internal {

// The part of a transfer that depends on the kind of ranks.
class Pending {
 public:
  virtual ~Pending() = default;

  // Wait until all pieces have been received, or until the memory of those to send is free again.
  virtual void wait_received() = 0;
  virtual void wait_sent() = 0;
};

// Who waits, for what, and how long.
struct Waiting {
  std::string_view what;
  int rank = 0, size = 1;
  std::chrono::milliseconds timeout{};
};

// Returns the message of a rank that has waited too long for another one, which should have sent
// (`receives`) or received a piece.
std::string still_text(const Waiting& waiting, int other, bool receives);

// Returns the message for a piece of another size than the receiver expects.
std::string size_text(const Waiting& waiting, int from, std::size_t expected, std::size_t sent);

}  // namespace internal

class Communicator;

// A transfer that is under way. Its memory belongs to it until it is complete: nothing may change
// what is sent or touch what is received. The destructor waits for nothing; a rank that drops a
// transfer which is not complete is one that fails.
class Transfer : public internal::Pending {
 public:
  Transfer() = default;

  // Waits until every piece has been received. Throws StandsStill after the timeout,
  // OtherRankFailed, and Error{CheckFailed}, which names both ranks, for pieces with a checksum
  // that have changed on their way. Does nothing for a default Transfer.
  void wait_received() override;

  // Waits until the memory of the pieces that were sent may be changed. Throws as wait_received(),
  // after which it is called.
  void wait_sent() override;

  // Does both.
  void wait() {
    wait_received();
    wait_sent();
  }

 private:
  friend class Communicator;
  Transfer(Communicator& ranks, std::string_view what) : ranks_(&ranks), what_(what) {}

  Communicator* ranks_ = nullptr;
  std::string_view what_;
  std::vector<ReceivePiece> checked_;
  std::vector<std::uint64_t> sums_;  // of `checked_`, then of the pieces to send
  // It ends before the memory of the sums, which other ranks may still read, when a transfer is
  // left by an error.
  std::unique_ptr<internal::Pending> pending_;
};

// The only way in which ranks meet. There are two kinds: threads of one process (thread_ranks.hpp)
// and processes that MPI has started (mpi_ranks.hpp). All ranks call the functions below in the
// same order; pieces between two ranks are matched in the order in which their transfers were
// started, and must then agree in size. One thread of a rank calls its communicator.
class Communicator {
 public:
  Communicator(int rank, int size, std::chrono::milliseconds timeout)
      : rank_(rank), size_(size), timeout_(timeout) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Returns the number by which messages name a rank, which differs from `rank` if these are some
  // ranks among others.
  virtual int number(int rank) const { return rank; }

  // Starts to send and receive pieces and returns at once. Pieces without bytes are left out, on
  // both sides. `what` says for people what travels, for example "Fwd: rows of S"; it must live as
  // long as the transfer. If `is_checked`, a checksum travels with every piece. Throws
  // Error{InvalidArgument} for a rank that does not exist or is the caller's own.
  Transfer start(std::string_view what, std::span<const SendPiece> sends,
                 std::span<const ReceivePiece> receives, bool is_checked = false);

  // Does start() and waits until it is complete.
  void exchange(std::string_view what, const std::vector<SendPiece>& sends,
                const std::vector<ReceivePiece>& receives, bool is_checked = false) {
    start(what, sends, receives, is_checked).wait();
  }

  // Starts to exchange a piece with every other rank: sends the list to(rank), and receives into
  // the list from(rank). Everybody begins with another rank, so that no rank is asked by all at
  // once. Does start().
  template <class To, class From>
  Transfer start_all(std::string_view what, const To& to, const From& from,
                     bool is_checked = false) {
    std::vector<SendPiece> sends;
    std::vector<ReceivePiece> receives;
    for (int step = 1; step < size(); ++step) {
      const int next = (rank() + step) % size(), last = (rank() + size() - step) % size();
      sends.push_back({next, std::as_bytes(std::span(to(next)))});
      receives.push_back({last, std::as_writable_bytes(std::span(from(last)))});
    }
    return start(what, sends, receives, is_checked);
  }

  // Does start_all() and waits until it is complete.
  template <class To, class From>
  void exchange_all(std::string_view what, const To& to, const From& from,
                    bool is_checked = false) {
    start_all(what, to, from, is_checked).wait();
  }

  // Returns when all ranks have called it. O(log(size)) messages of one byte.
  void barrier(std::string_view what);

  // Makes every other rank fail with this message, for a rank that cannot go on. Ranks that are
  // processes end with the exit code, this one too; ranks that are threads throw OtherRankFailed
  // from their next wait.
  virtual void abort(int exit_code, const std::string& message) noexcept = 0;

  // Returns the longest time that this rank waits for others without anything happening.
  std::chrono::milliseconds timeout() const { return timeout_; }

  // Returns what this rank has received and how long it has waited so far.
  const Traffic& traffic() const { return traffic_; }

 protected:
  // Starts a transfer of pieces that were checked and that are not empty.
  virtual std::unique_ptr<internal::Pending> begin(std::string_view what,
                                                   std::span<const SendPiece> sends,
                                                   std::span<const ReceivePiece> receives) = 0;

 private:
  friend class Transfer;
  void check_other(int other) const;

  int rank_, size_;
  std::chrono::milliseconds timeout_;
  Traffic traffic_;
};

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
  std::unique_ptr<internal::Pending> begin(std::string_view what, std::span<const SendPiece> sends,
                                           std::span<const ReceivePiece> receives) override;

 private:
  Communicator& all_;
  std::vector<int> members_;
};

// The timeout of a communicator unless its maker is given another one.
constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::seconds(300);

}  // namespace tessera::distributed
