// The program of one rank for mpirun_test.cpp: `one_rank WHAT [RANK]`. It computes three passes and
// compares this rank's rows with a layer of one process, or lets rank RANK do something that ends
// the job.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/mpi_ranks.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"

namespace {

using namespace tessera;
using distributed::Communicator;
using distributed::RankLayer;

const host::HostCpu kCpu{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
const Problem kProblem{.size = {1, 157, 203, 150},
                       .density = 0.2,
                       .data_type = DataType::Float,
                       .grad_a = true,
                       .grad_w = true};

bool equal(MatrixView<const float> a, MatrixView<const float> b) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t c = 0; c < a.cols; ++c)
      if (a(r, c) != b(r, c)) return false;
  return true;
}

MatrixView<const float> part(const Matrix<float>& whole, Range rows) {
  return whole.view().sub(rows, {0, whole.cols()});
}

int compare(Communicator& ranks) {
  const auto weights = sparse::random_pattern(157, 203, {1, 1}, 0.2, 1);
  const auto s = random_matrix<float>(203, 150, 2), q_grad = random_matrix<float>(157, 150, 3);
  const auto executor = make_executor(1);
  host::HostLayer alone(kProblem, kCpu, *executor);
  alone.set_weights(weights);
  Matrix<float> q(157, 150), s_grad(203, 150);
  std::vector<float> gradients(weights.values.size());
  alone.forward<float>(s.view(), q.view());
  alone.grad_a<float>(q_grad.view(), s_grad.view());
  alone.grad_w<float>(q_grad.view(), s.view(), gradients);

  RankLayer layer(kProblem, kCpu, *executor, ranks);
  layer.set_weights(sparse::checked(weights));
  const Range rows = layer.outputs(), cols = layer.inputs();
  Matrix<float> own_q(rows.size(), 150), own_s_grad(cols.size(), 150);
  std::vector<float> own(std::size_t(layer.values()));
  bool ok = true;
  for (int turn = 0; turn < 3; ++turn) {
    layer.forward<float>(part(s, cols), own_q.view());
    layer.grad_a<float>(part(q_grad, rows), own_s_grad.view());
    layer.grad_w<float>(part(q_grad, rows), part(s, cols), own);
    const auto first = gradients.begin() + weights.row_begin[std::size_t(rows.begin)];
    ok = ok && equal(part(own_q, {0, rows.size()}), part(q, rows)) &&
         equal(part(own_s_grad, {0, cols.size()}), part(s_grad, cols)) &&
         std::vector<float>(first, first + std::ssize(own)) == own;
  }
  std::printf("rank %d of %d: %s\n", ranks.rank(), ranks.size(), ok ? "same bits" : "OTHER BITS");
  return ok ? 0 : 1;
}

// Two ranks exchange 8 bytes, but one of them sends 3.
int exchange_less(Communicator& ranks, int shorter) {
  const std::vector<std::byte> sent(ranks.rank() == shorter ? 3 : 8);
  std::vector<std::byte> received(8);
  const distributed::SendPiece send{1 - ranks.rank(), sent};
  const distributed::ReceivePiece receive{1 - ranks.rank(), received};
  ranks.exchange("Fwd: rows of S", {send}, {receive});
  ranks.barrier("end");
  return 0;
}

int end_badly(Communicator& ranks, const std::string& what, int rank) {
  if (what == "shorten") return exchange_less(ranks, rank);
  ranks.barrier("start");
  if (ranks.rank() == rank) {
    if (what == "throw") throw Error(ErrorCode::BadInput, "row 7 is not sorted");
    if (what == "kill") std::raise(SIGKILL);
    if (what == "stop") std::raise(SIGSTOP);
    if (what == "leave") ::_exit(0);
  }
  ranks.barrier("Fwd: rows of S");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int rank = argc > 2 ? std::atoi(argv[2]) : 0;
  const auto body = [&](Communicator& ranks) {
    return what == "compare" ? compare(ranks) : end_badly(ranks, what, rank);
  };
  const auto failed = [] {
    try {
      throw;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "one_rank: %s\n", error.what());
    }
    return 3;
  };
  // A rank that stands still is found soon; the others may be slow on a busy computer.
  return distributed::run_mpi_rank(body, failed, std::chrono::seconds(what == "stop" ? 2 : 120));
}
