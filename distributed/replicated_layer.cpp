#include "tessera/distributed/replicated_layer.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "tessera/distributed/sub_ranks.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::distributed {
namespace {

// Rank i * replicas + k has run i of the rows of part k.
std::vector<int> every(int first, int step, int count) {
  std::vector<int> members;
  for (int i = 0; i < count; ++i) members.push_back(first + i * step);
  return members;
}

std::vector<std::int64_t> row_counts(const sparse::Csr<float>& matrix) {
  std::vector<std::int64_t> counts;
  for (std::size_t r = 1; r < matrix.row_begin.size(); ++r)
    counts.push_back(matrix.row_begin[r] - matrix.row_begin[r - 1]);
  return counts;
}

int checked_replicas(const Problem& problem, int ranks, int replicas) {
  if (replicas < 1 || ranks % replicas != 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} replicas do not divide {} ranks", replicas, ranks));
  if (problem.data_type != DataType::Float || problem.grad_a || problem.grad_w)
    throw Error(ErrorCode::InvalidArgument,
                "a layer with replicas computes the forward pass in float; use DistributedLayer");
  return replicas;
}

}  // namespace

double received_values(const Dims& size, int ranks, int replicas) {
  const double c = replicas, all = ranks;
  const double x = double(size.x), y = double(size.y), z = double(size.z);
  return y * z / c * (1 - c / all) + x * z * c / all * (1 - 1 / c);
}

int cheapest_replicas(const Dims& size, int ranks) {
  int best = 1;
  for (int c = 2; c <= ranks; ++c)
    if (ranks % c == 0 && received_values(size, ranks, c) < received_values(size, ranks, best))
      best = c;
  return best;
}

struct ReplicatedLayer::State {
  State(const Problem& p, const host::HostCpu& c, Executor& e, Communicator& ranks, int replicas)
      : problem(p),
        cpu(c),
        executor(e),
        run(ranks.rank() / replicas),
        part(ranks.rank() % replicas),
        of_part(ranks, every(part, replicas, ranks.size() / replicas)),
        of_run(ranks, every(run * replicas, 1, replicas)) {}

  Problem problem;
  host::HostCpu cpu;
  Executor& executor;
  int run, part;
  SubRanks of_part, of_run;  // the ranks with this part of the columns, with this run of rows
  std::optional<DistributedLayer> layer;  // of this part
  std::int64_t first_column = 0;          // of this part
  RowCut pieces;                          // of the rows of this run, for its ranks
  Matrix<float> partial;                  // of the rows of this run
  std::vector<float> received;
};

ReplicatedLayer::ReplicatedLayer(const Problem& problem, const host::HostCpu& cpu,
                                 Executor& executor, Communicator& ranks, int replicas)
    : state_(new State(problem, cpu, executor, ranks,
                       checked_replicas(problem, ranks.size(), replicas))) {
  check_problem(problem);
}

ReplicatedLayer::~ReplicatedLayer() = default;

void ReplicatedLayer::set_weights(const sparse::Csr<float>& weights) {
  State& s = *state_;
  const Dims size = s.problem.size_in_blocks();
  if (weights.rows != size.x || weights.cols != size.y || weights.block != s.problem.block)
    throw Error(ErrorCode::InvalidArgument,
                "set_weights: the matrix has another size or block than the layer");
  const sparse::Csr<float> transpose = sparse::transpose(weights);
  const RowCut parts =
      cut_evenly(row_counts(transpose), s.problem.size.y, s.problem.block.cols, s.of_run.size());
  for (int part = 0; part < parts.ranks(); ++part)
    if (parts.of(part).size() == 0)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("set_weights: part {} of the columns is empty; {} replicas are too "
                              "many for this matrix",
                              part, parts.ranks()));
  const Range own = parts.of(s.part);
  Problem problem = s.problem;
  problem.size.y = own.size();
  const RowCut runs =
      cut_evenly(row_counts(weights), s.problem.size.x, s.problem.block.rows, s.of_part.size());
  s.layer.emplace(problem, s.cpu, s.executor, s.of_part, LayerOptions{.outputs = runs});
  s.layer->set_weights(sparse::transpose(rows_of(transpose, own)));
  s.first_column = own.begin;
  s.pieces = cut_rows(runs.of(s.run).size(), s.problem.block.rows, s.of_run.size());
}

void ReplicatedLayer::forward(MatrixView<const float> s, MatrixView<float> q) {
  State& state = *state_;
  const Range own = outputs();
  if (q.rows != own.size() || q.cols != s.cols)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("forward: q is {} x {}, but this rank has {} x {} of it", q.rows,
                            q.cols, own.size(), s.cols));
  if (state.partial.rows() != state.pieces.rows() || state.partial.cols() != s.cols)
    state.partial = Matrix<float>(state.pieces.rows(), s.cols);
  state.layer->forward<float>(s, state.partial.view());
  const int count = state.of_run.size(), rank = state.of_run.rank();
  const std::int64_t piece = own.size() * s.cols;
  state.received.resize(std::size_t(piece * count));
  const auto of_part = [&](int part) {
    return std::span(state.received).subspan(std::size_t(part * piece), std::size_t(piece));
  };
  std::vector<SendPiece> sends;
  std::vector<ReceivePiece> receives;
  for (int other = 0; other < count; ++other) {
    if (other == rank) continue;
    const Range rows = state.pieces.of(other);
    sends.push_back({other, std::as_bytes(std::span(state.partial.elements())
                                              .subspan(std::size_t(rows.begin * s.cols),
                                                       std::size_t(rows.size() * s.cols)))});
    receives.push_back({other, std::as_writable_bytes(of_part(other))});
  }
  state.of_run.exchange("Fwd: partial sums of Q", sends, receives);
  const std::int64_t first = state.pieces.of(rank).begin;
  for (std::int64_t r = 0; r < own.size(); ++r)
    for (std::int64_t c = 0; c < s.cols; ++c) {
      float sum = 0;
      for (int part = 0; part < count; ++part) {
        const float value =
            part == rank ? state.partial(first + r, c) : of_part(part)[std::size_t(r * s.cols + c)];
        sum = part == 0 ? value : sum + value;
      }
      q(r, c) = sum;
    }
}

Range ReplicatedLayer::outputs() const {
  if (!state_->layer) throw Error(ErrorCode::InvalidArgument, "outputs: set_weights comes first");
  const std::int64_t first = state_->layer->outputs().of(state_->run).begin;
  const Range piece = state_->pieces.of(state_->of_run.rank());
  return {first + piece.begin, first + piece.end};
}

Range ReplicatedLayer::inputs() const {
  if (!state_->layer) throw Error(ErrorCode::InvalidArgument, "inputs: set_weights comes first");
  const Range own = state_->layer->inputs().of(state_->run);
  return {state_->first_column + own.begin, state_->first_column + own.end};
}

}  // namespace tessera::distributed
