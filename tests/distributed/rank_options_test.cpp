// Options of a run on ranks: checks that find faults and name the rank, stops and progress.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/verify/progress.hpp"

namespace tessera::distributed {
namespace {

const host::HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
// So many values that the loops of a rank go to its executor.
const Problem kProblem{.size = {1, 300, 310, 150},
                       .density = 0.3,
                       .data_type = DataType::Float,
                       .grad_a = true,
                       .grad_w = true};

// An executor that damages a number behind every loop, as a processor with a fault would.
class FaultyExecutor : public Executor {
 public:
  explicit FaultyExecutor(float* damaged) : damaged_(damaged) {}
  int threads() const override { return 2; }

 protected:
  void run(std::int64_t count, Task task) override {
    for (std::int64_t i = 0; i < count; ++i) task.call(task.object, i);
    *damaged_ = 1000;
  }

 private:
  float* damaged_;
};

// The ranks of a link that flips a bit of the first rows of an operand that arrive.
class FaultyLink : public Communicator {
 public:
  explicit FaultyLink(Communicator& all)
      : Communicator(all.rank(), all.size(), all.timeout()), all_(all) {}
  void abort(int code, const std::string& message) noexcept override { all_.abort(code, message); }

 protected:
  std::unique_ptr<internal::Pending> begin(std::string_view what, std::span<const SendPiece> sends,
                                           std::span<const ReceivePiece> receives) override {
    std::span<std::byte> first;
    for (const ReceivePiece& piece : receives)
      if (what.find(": rows of ") != what.npos && first.empty()) first = piece.bytes;
    return std::make_unique<Faulty>(all_.start(what, sends, receives), first);
  }

 private:
  class Faulty : public internal::Pending {
   public:
    Faulty(Transfer transfer, std::span<std::byte> bytes)
        : transfer_(std::move(transfer)), bytes_(bytes) {}
    void wait_received() override {
      transfer_.wait_received();
      if (!bytes_.empty()) bytes_[17] ^= std::byte{4};
      bytes_ = {};
    }
    void wait_sent() override { transfer_.wait(); }

   private:
    Transfer transfer_;
    std::span<std::byte> bytes_;
  };

  Communicator& all_;
};

// A rank's operands and results.
struct OwnPart {
  explicit OwnPart(const RankLayer& layer, int rank)
      : rows(layer.outputs()),
        cols(layer.inputs()),
        s(random_matrix<float>(cols.size(), 150, 5 + std::uint64_t(rank))),
        q_grad(random_matrix<float>(rows.size(), 150, 15 + std::uint64_t(rank))),
        q(rows.size(), 150),
        s_grad(cols.size(), 150),
        gradients(std::size_t(layer.values())) {}

  void run(RankLayer& layer, Pass pass, const layer::PassOptions& options) {
    PassTimes times{.host = {.kernel_seconds = 1e9}};  // of a pass before
    switch (pass) {
      case Pass::Fwd:
        finished = layer.forward<float>(std::as_const(s).view(), q.view(), options, times);
        break;
      case Pass::GradA:
        finished = layer.grad_a<float>(std::as_const(q_grad).view(), s_grad.view(), options, times);
        break;
      case Pass::GradW:
        finished = layer.grad_w<float>(std::as_const(q_grad).view(), std::as_const(s).view(),
                                       gradients, options, times);
        break;
    }
    EXPECT_LT(times.host.kernel_seconds, 1e9);
  }

  Range rows, cols;
  Matrix<float> s, q_grad, q, s_grad;
  std::vector<float> gradients;
  bool finished = false;
};

const Pass kPasses[] = {Pass::Fwd, Pass::GradA, Pass::GradW};

TEST(RankOptions, ACheckPassesOnEveryRankAndChangesNoResult) {
  const auto weights = sparse::random_pattern(300, 310, {1, 1}, 0.3, 1);
  run_ranks(3, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(kProblem, kTiny, *executor, ranks);
    layer.set_weights(sparse::checked(weights));
    OwnPart plain(layer, ranks.rank()), checked(layer, ranks.rank());
    for (const Pass pass : kPasses) {
      verify::Checksums checksums;
      plain.run(layer, pass, {});
      checked.run(layer, pass, {.self_check = &checksums});
      EXPECT_TRUE(checked.finished && checksums.ok());
      EXPECT_GT(checksums.compared, 0);
    }
    EXPECT_EQ(checked.q, plain.q);
    EXPECT_EQ(checked.s_grad, plain.s_grad);
    EXPECT_EQ(checked.gradients, plain.gradients);
  });
}

// Runs a pass with a self-check on ranks of which rank 1 has a fault, and returns the message.
std::string message_of_fault(Pass pass, bool link, bool repair = false) {
  const auto weights = sparse::random_pattern(300, 310, {1, 1}, 0.3, 1);
  return test::message_of(
      [&] {
        run_ranks(3, [&](Communicator& all) {
          FaultyLink faulty(all);
          Communicator& ranks = link && all.rank() == 1 ? faulty : all;
          float nowhere = 0;
          FaultyExecutor damaging(&nowhere);
          RankLayer layer(kProblem, kTiny, damaging, ranks);
          layer.set_weights(sparse::checked(weights));
          OwnPart part(layer, ranks.rank());
          if (!link && ranks.rank() == 1)
            damaging = FaultyExecutor(pass == Pass::Fwd     ? &part.q(3, 70)
                                      : pass == Pass::GradA ? &part.s_grad(3, 70)
                                                            : &part.gradients[7]);
          verify::Checksums checksums;
          part.run(layer, pass, {.self_check = &checksums, .repair = repair});
          ranks.barrier("end");
        });
      },
      ErrorCode::CheckFailed);
}

TEST(RankOptions, AFaultOfOneRankIsFoundAndTheRankIsNamed) {
  for (const Pass pass : kPasses) {
    const std::string message = message_of_fault(pass, false);
    EXPECT_NE(message.find(std::string(to_string(pass)) + " of columns "), message.npos) << message;
    EXPECT_NE(message.find(" on rank 1"), message.npos) << message;
    // A second run has the same fault.
    EXPECT_NE(message_of_fault(pass, false, true).find(" on rank 1"), message.npos);
  }
}

TEST(RankOptions, RowsThatChangeOnTheirWayAreFoundAndBothRanksAreNamed) {
  for (const Pass pass : kPasses) {
    const std::string message = message_of_fault(pass, true);
    EXPECT_NE(message.find(std::string(to_string(pass)) + ": rows of "), message.npos) << message;
    EXPECT_NE(message.find("have changed on their way from rank 0 to rank 1"), message.npos)
        << message;
  }
}

TEST(RankOptions, AStopOfOneRankEndsThePassOnAll) {
  const auto weights = sparse::random_pattern(300, 310, {1, 1}, 0.3, 1);
  run_ranks(3, [&](Communicator& ranks) {
    const auto executor = make_executor(1);
    RankLayer layer(kProblem, kTiny, *executor, ranks);
    layer.set_weights(sparse::checked(weights));
    OwnPart part(layer, ranks.rank());
    std::stop_source stop;
    std::int64_t begun = 0;
    part.run(layer, Pass::Fwd,
             {.stop = stop.get_token(), .progress = [&](const verify::Progress& step) {
                EXPECT_EQ(step.step, "Fwd: rows of S");
                EXPECT_EQ(step.begun, begun++);
                if (ranks.rank() == 2) stop.request_stop();  // before the first panel
              }});
    EXPECT_FALSE(part.finished);
    EXPECT_EQ(begun, 1);
    part.run(layer, Pass::Fwd, {});  // the layer is as it was
    EXPECT_TRUE(part.finished);
  });
}

}  // namespace
}  // namespace tessera::distributed
