// Ranks that are threads: messages, failures and ranks that stand still.

#include "tessera/distributed/communicator.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/mpi_ranks.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::distributed {
namespace {

using namespace std::chrono_literals;

// Sets an environment variable, or takes it away, until the end of a scope.
class Variable {
 public:
  Variable(const char* name, const char* text) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(text);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* text) {
    if (text == nullptr)
      unsetenv(name_);
    else
      setenv(name_, text, 1);
  }
  const char* name_;
  std::optional<std::string> before_;
};

// The launcher says by an environment variable how many ranks share the computer's cores.
TEST(RanksOfThisComputer, AreAsManyAsTheLauncherSays) {
  constexpr const char *kOpenMpi = "OMPI_COMM_WORLD_LOCAL_SIZE", *kOther = "MPI_LOCALNRANKS";
  const Variable no_open_mpi(kOpenMpi, nullptr), no_other(kOther, nullptr);
  EXPECT_EQ(ranks_of_this_computer(), 1);
  for (const char* name : {kOpenMpi, kOther})
    for (const auto& [text, ranks] : {std::pair("3", 3), {"0", 1}, {"many", 1}}) {
      const Variable launcher(name, text);
      EXPECT_EQ(ranks_of_this_computer(), ranks) << name << " " << text;
    }
  const Variable first(kOpenMpi, "3"), second(kOther, "5");
  EXPECT_EQ(ranks_of_this_computer(), 3);
}

TEST(Communicator, ListsArriveAtTheRankTheyAreFor) {
  for (const int count : {1, 2, 3, 4, 5, 8})
    run_ranks(count, [](Communicator& ranks) {
      std::vector<std::vector<int>> lists;
      for (int to = 0; to < ranks.size(); ++to)
        lists.emplace_back(std::size_t(to + ranks.rank()), 100 * ranks.rank() + to);
      const auto got = exchange_lists(ranks, "lists", std::move(lists));
      for (int from = 0; from < ranks.size(); ++from)
        EXPECT_EQ(got[std::size_t(from)],
                  std::vector<int>(std::size_t(from + ranks.rank()), 100 * from + ranks.rank()));
    });
}

TEST(Communicator, RefusesASizeThatNoListHas) {
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{1} << 62})
    run_ranks(2, [&](Communicator& ranks) {
      if (ranks.rank() == 0) {
        const std::string message = test::message_of(
            [&] { gather_lists(ranks, "numbers", std::vector<int>{1}); }, ErrorCode::Internal);
        EXPECT_NE(message.find("numbers: rank 1 has a list of " + std::to_string(size)),
                  std::string::npos)
            << message;
        return;
      }
      std::int64_t received = 0;
      ranks.exchange("numbers", {{0, std::as_bytes(std::span(&size, 1))}},
                     {{0, std::as_writable_bytes(std::span(&received, 1))}});
    });
}

TEST(Communicator, TransfersThatAreUnderWayTogetherAreMatchedInOrder) {
  run_ranks(2, [](Communicator& ranks) {
    const int other = 1 - ranks.rank();
    const std::vector<int> sent{10 + ranks.rank(), 20 + ranks.rank()};
    std::vector<int> got(2);
    std::vector<Transfer> transfers;
    for (std::size_t i = 0; i < 2; ++i) {
      const SendPiece send{other, std::as_bytes(std::span(&sent[i], 1))};
      const ReceivePiece receive{other, std::as_writable_bytes(std::span(&got[i], 1))};
      transfers.push_back(ranks.start("a number", {&send, 1}, {&receive, 1}));
    }
    transfers[1].wait();  // the later one first
    transfers[0].wait();
    EXPECT_EQ(got, (std::vector<int>{10 + other, 20 + other}));
    EXPECT_EQ(ranks.traffic().received_bytes, 8);
  });
}

TEST(Communicator, CountsAllTheTimeThatItWaits) {
  run_ranks(2, [](Communicator& ranks) {
    std::byte number{};
    const SendPiece send{1, {&number, 1}};
    const ReceivePiece receive{0, {&number, 1}};
    double before = 0;
    for (const auto late : {20ms, 0ms}) {  // the second wait is the shorter one
      if (ranks.rank() == 0) {
        std::this_thread::sleep_for(late);
        ranks.start("a byte", {&send, 1}, {}).wait();
      } else {
        ranks.start("a byte", {}, {&receive, 1}).wait();
      }
      EXPECT_GE(ranks.traffic().wait_seconds, before);
      before = ranks.traffic().wait_seconds;
    }
  });
}

TEST(Communicator, NobodyLeavesABarrierBeforeTheLastHasCome) {
  for (const int count : {2, 3, 8}) {
    std::atomic<int> arrived = 0;
    run_ranks(count, [&](Communicator& ranks) {
      for (int round = 1; round <= 5; ++round) {
        ++arrived;
        ranks.barrier("round");
        EXPECT_GE(arrived, round * count);
      }
    });
  }
}

TEST(Communicator, ARankThatAbortsIsNeverTakenForOneThatEnded) {
  const auto run = [](bool throws) {
    return test::message_of(
        [&] {
          run_ranks(3, [&](Communicator& ranks) {
            if (ranks.rank() == 1) {
              ranks.abort(1, "no memory left");
              if (throws) throw Error(ErrorCode::Internal, "gives up");
            } else {
              ranks.barrier("start");
            }
          });
        },
        ErrorCode::Internal);
  };
  EXPECT_EQ(run(/*throws=*/true), "rank 1 of 3: gives up");
  EXPECT_EQ(run(/*throws=*/false), "rank 1 failed: no memory left");
}

TEST(Communicator, TheErrorOfOneRankEndsAllWithItsMessageAndCode) {
  std::atomic<int> ended = 0;
  const auto run = [&] {
    run_ranks(4, [&](Communicator& ranks) {
      struct Ends {
        std::atomic<int>& count;
        ~Ends() { ++count; }
      } ends{ended};
      if (ranks.rank() == 2) throw Error(ErrorCode::BadInput, "row 7 is not sorted");
      ranks.barrier("reading");
      ranks.barrier("reading");
    });
  };
  EXPECT_EQ(test::message_of(run, ErrorCode::BadInput), "rank 2 of 4: row 7 is not sorted");
  EXPECT_EQ(ended, 4);
}

// Runs three ranks, of which one throws this while the others wait.
template <class Thrown>
void throw_on_one_rank(const Thrown& thrown) {
  for (const int thrower : {0, 2})
    EXPECT_THROW(run_ranks(3,
                           [&](Communicator& ranks) {
                             if (ranks.rank() == thrower) throw thrown;
                             ranks.barrier("start");
                           }),
                 Thrown);
}

TEST(Communicator, AnExceptionOfAnotherTypeEndsAllToo) {
  throw_on_one_rank(std::bad_alloc());
  throw_on_one_rank(7);
  throw_on_one_rank(std::string("of no type that exceptions have"));
}

// Returns the message of a run in which rank 1 stands still while the others do `work`.
template <class Work>
std::string message_while_one_stands_still(int count, const Work& work) {
  std::atomic<bool> over = false;
  const auto one_rank = [&](Communicator& ranks) {
    if (ranks.rank() == 1) {
      while (!over) std::this_thread::sleep_for(1ms);
      return;
    }
    try {
      work(ranks);
    } catch (...) {
      over = true;
      throw;
    }
  };
  return test::message_of([&] { run_ranks(count, one_rank, 400ms); }, ErrorCode::Internal);
}

TEST(Communicator, ARankThatStandsStillIsNamedAfterTheTimeout) {
  const std::string message = message_while_one_stands_still(3, [](Communicator& ranks) {
    gather_lists(ranks, "Fwd: rows of S", std::vector<int>{ranks.rank()});
  });
  EXPECT_NE(message.find("of 3: Fwd: rows of S: rank 1 has "), message.npos) << message;
  EXPECT_NE(message.find("for 0.4 s"), message.npos) << message;
}

TEST(Communicator, ARankThatTakesNothingIsNamedAfterTheTimeout) {
  const std::string message = message_while_one_stands_still(2, [](Communicator& ranks) {
    std::byte byte{};
    const SendPiece send{1, {&byte, 1}};
    ranks.exchange("rows of S", {send}, {});
  });
  EXPECT_NE(message.find("rank 0 of 2: rows of S: rank 1 has taken nothing for 0.4 s"),
            message.npos)
      << message;
}

TEST(Communicator, APieceOfAnotherSizeIsAnError) {
  const std::string message = test::message_of(
      [] {
        run_ranks(2, [](Communicator& ranks) {
          std::vector<std::byte> bytes(std::size_t(3 + ranks.rank()));
          const SendPiece send{1 - ranks.rank(), bytes};
          std::vector<std::byte> in(3);
          const ReceivePiece receive{1 - ranks.rank(), in};
          ranks.exchange("rows of S", {send}, {receive});
        });
      },
      ErrorCode::Internal);
  EXPECT_NE(message.find("rows of S: rank 1 sent 4 bytes, but 3 were expected"), message.npos)
      << message;
}

TEST(Communicator, RanksThatDoNotExistAreRefused) {
  for (const int other : {-1, 0, 2})
    EXPECT_NE(test::refusal([other] {
                run_ranks(2, [other](Communicator& ranks) {
                  if (ranks.rank() == 1) return;
                  std::byte byte{};
                  const SendPiece send{other, {&byte, 1}};
                  ranks.exchange("a byte", {send}, {});
                });
              }).find("has no messages with rank"),
              std::string::npos);
  EXPECT_NE(test::refusal([] { run_ranks(0, [](Communicator&) {}); }), "");
}

}  // namespace
}  // namespace tessera::distributed
