#include "tessera/distributed/replicated_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/internal/columns.hpp"
#include "tessera/distributed/internal/part_product.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::distributed {
namespace {

[[noreturn]] void refuse_replicas(const std::string& message) {
  throw Error(ErrorCode::InvalidArgument, message);
}

std::vector<int> every(int first, int step, int count) {
  std::vector<int> members;
  for (int i = 0; i < count; ++i) members.push_back(first + i * step);
  return members;
}

// In Fwd rank i * replicas + k has run i of the rows of part k, so that its rows of Q are the piece
// of its number.
internal::GridPlace place_in_fwd(int rank, int ranks, int replicas) {
  const int run = rank / replicas, part = rank % replicas;
  return {run, part, every(part, replicas, ranks / replicas), every(run * replicas, 1, replicas)};
}

// In GradA rank k * (ranks / replicas) + i has run i of part k of the transpose, so that its rows
// of dQ are the same piece.
internal::GridPlace place_in_grad_a(int rank, int ranks, int replicas) {
  const int runs = ranks / replicas, run = rank % runs, part = rank / runs;
  return {run, part, every(part * runs, 1, runs), every(run, runs, replicas)};
}

std::vector<std::int64_t> row_counts(const sparse::Csr<float>& matrix) {
  std::vector<std::int64_t> counts;
  for (std::size_t r = 1; r < matrix.row_begin.size(); ++r)
    counts.push_back(matrix.row_begin[r] - matrix.row_begin[r - 1]);
  return counts;
}

int checked_replicas(const Problem& problem, int ranks, int replicas) {
  check_problem(problem);
  if (problem.data_type != DataType::Float || problem.size.g != 1)
    refuse_replicas("a layer with replicas computes one group in float; use DistributedLayer");
  if (replicas == 0) return cheapest_replicas(problem, ranks);
  if (replicas < 1 || ranks % replicas != 0)
    refuse_replicas(fmt::format("{} replicas do not divide {} ranks", replicas, ranks));
  return replicas;
}

bool has(Range range, std::int64_t at) { return range.begin <= at && at < range.end; }

Range overlap(Range a, Range b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace

double received_values(const Dims& size, int ranks, int replicas, Pass pass) {
  const double c = replicas, all = ranks;
  double in = double(size.y) * double(size.z), out = double(size.x) * double(size.z);
  if (pass == Pass::GradA) std::swap(in, out);
  const double home = pass == Pass::GradA && replicas * replicas != ranks && ranks > 1
                          ? out / all
                          : 0;  // dS goes to the rows of S
  return in / c * (1 - c / all) + out * c / all * (1 - 1 / c) + home;
}

int cheapest_replicas(const Problem& problem, int ranks) {
  const auto values = [&](int replicas) {
    double sum = 0;
    for (const Pass pass : passes_of(problem))
      sum += received_values(problem.size, ranks, replicas, pass);
    return sum;
  };
  int best = 1;
  for (int c = 2; c <= ranks; ++c)
    if (ranks % c == 0 && values(c) < values(best)) best = c;
  return best;
}

struct ReplicatedLayer::State {
  State(const Problem& p, const host::HostCpu& cpu, Executor& executor, Communicator& all, int c)
      : problem(p),
        ranks(all),
        replicas(c),
        fwd(cpu, executor, all, place_in_fwd(all.rank(), all.size(), c)) {
    if (p.grad_a) grad_a.emplace(cpu, executor, all, place_in_grad_a(all.rank(), all.size(), c));
  }

  Problem problem;
  Communicator& ranks;
  int replicas;
  bool has_weights = false;  // for all passes
  internal::PartProduct fwd;
  std::optional<internal::PartProduct> grad_a;     // of the transpose
  std::vector<Range> inputs, grad_a_outputs;       // rows of S, and of dS behind GradA, by rank
  std::vector<Range> rows, columns;                // of R in Fwd, by rank
  std::vector<Range> grad_a_rows, grad_a_columns;  // of R, by rank
  std::vector<std::int32_t> order;                 // received_order of the part of the transpose
  std::vector<int> sender;  // of each block of that part, by row of R, then by column
  Matrix<float> moved;      // rows of dS before they go to their ranks

  void require_weights(const char* call) const {
    if (!has_weights) refuse_replicas(fmt::format("{}: set_weights comes first", call));
  }
  void check_operand(const char* call, const char* name, MatrixView<const float> view,
                     Range rows_of, std::int64_t cols) const {
    if (view.rows != rows_of.size() || view.cols != cols)
      refuse_replicas(fmt::format("{}: {} is {} x {}, but this rank has {} x {} of it", call, name,
                                  view.rows, view.cols, rows_of.size(), cols));
  }

  std::vector<Range> of_all(Range own) {
    std::vector<Range> all;
    for (const auto& list : gather_lists(ranks, "places of the ranks", std::vector<Range>{own}))
      all.push_back(list[0]);
    return all;
  }

  // Finds out where the values of this rank's part of the transpose come from.
  void set_senders(const sparse::Csr<float>& weights) {
    const BlockShape block = problem.block;
    const Range own_rows = grad_a->columns(), own_columns = grad_a->rows();
    order = internal::received_order(grad_a->layer().weights());
    sender.clear();
    for (std::int64_t row = own_rows.begin / block.rows; row * block.rows < own_rows.end; ++row)
      for (std::int64_t i = weights.row_begin[std::size_t(row)];
           i < weights.row_begin[std::size_t(row) + 1]; ++i) {
        const std::int64_t column = weights.col[std::size_t(i)] * block.cols;
        if (!has(own_columns, column)) continue;
        std::size_t rank = 0;
        while (!has(rows[rank], row * block.rows) || !has(columns[rank], column)) ++rank;
        sender.push_back(int(rank));
      }
  }

  // Sends this rank's values to the ranks that have them in their part of the transpose.
  void send_values() {
    const sparse::Csr<float>& own = fwd.layer().weights();
    const BlockShape block = problem.block;
    const std::int64_t area = block.area();
    std::vector<std::vector<float>> to(std::size_t(ranks.size()));
    for (std::int64_t row = 0; row < own.block_rows(); ++row)
      for (std::int64_t i = own.row_begin[std::size_t(row)];
           i < own.row_begin[std::size_t(row) + 1]; ++i) {
        const std::int64_t r = fwd.rows().begin + row * block.rows;
        const std::int64_t c = fwd.columns().begin + own.col[std::size_t(i)] * block.cols;
        std::size_t rank = 0;
        while (!has(grad_a_rows[rank], r) || !has(grad_a_columns[rank], c)) ++rank;
        to[rank].insert(to[rank].end(), own.values.begin() + i * area,
                        own.values.begin() + (i + 1) * area);
      }
    const auto lists = exchange_lists(ranks, "values of the weights", std::move(to));
    std::vector<std::int64_t> next(lists.size());
    std::vector<float> values(order.size() * std::size_t(area));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto from = std::size_t(sender[i]);
      const float* const at = lists[from].data() + next[from];
      next[from] += area;
      for (std::int64_t r = 0; r < block.rows; ++r)
        for (std::int64_t c = 0; c < block.cols; ++c)
          values[std::size_t(order[i] * area + c * block.rows + r)] = at[r * block.cols + c];
    }
    grad_a->layer().set_values(values);
  }

  // Sends rows of dS from where GradA has left them to the ranks that have these rows of S.
  void move_home(MatrixView<float> s_grad) {
    const auto own = std::size_t(ranks.rank());
    const auto copy = [&](Range from, Matrix<float>& piece) {
      const std::int64_t first = from.begin - grad_a_outputs[own].begin;
      piece = Matrix<float>(from.size(), s_grad.cols);
      for (std::int64_t r = 0; r < from.size(); ++r)
        for (std::int64_t c = 0; c < s_grad.cols; ++c) piece(r, c) = moved(first + r, c);
    };
    std::vector<Matrix<float>> out(std::size_t(ranks.size())), in(out.size());
    std::vector<SendPiece> sends;
    std::vector<ReceivePiece> receives;
    for (std::size_t rank = 0; rank < out.size(); ++rank) {
      copy(overlap(grad_a_outputs[own], inputs[rank]), out[rank]);
      if (rank == own) {
        in[rank] = out[rank];
        continue;
      }
      in[rank] = Matrix<float>(overlap(grad_a_outputs[rank], inputs[own]).size(), s_grad.cols);
      sends.push_back({int(rank), std::as_bytes(std::span(std::as_const(out[rank]).elements()))});
      receives.push_back({int(rank), std::as_writable_bytes(std::span(in[rank].elements()))});
    }
    ranks.exchange("GradA: rows of dS", sends, receives);
    for (std::size_t rank = 0; rank < in.size(); ++rank) {
      const Range rows_of = overlap(grad_a_outputs[rank], inputs[own]);
      for (std::int64_t r = 0; r < rows_of.size(); ++r)
        for (std::int64_t c = 0; c < s_grad.cols; ++c)
          s_grad(rows_of.begin - inputs[own].begin + r, c) = in[rank](r, c);
    }
  }
};

ReplicatedLayer::ReplicatedLayer(const Problem& problem, const host::HostCpu& cpu,
                                 Executor& executor, Communicator& ranks, int replicas)
    : state_(new State(problem, cpu, executor, ranks,
                       checked_replicas(problem, ranks.size(), replicas))) {}

ReplicatedLayer::~ReplicatedLayer() = default;

void ReplicatedLayer::set_weights(const sparse::Csr<float>& weights) {
  State& s = *state_;
  const Dims size = s.problem.size_in_blocks();
  if (weights.rows != size.x || weights.cols != size.y || weights.block != s.problem.block)
    refuse_replicas("set_weights: the matrix has another size or block than the layer");
  require_same(s.ranks, "set_weights",
               {given_problem(s.problem),
                given_weights({&weights, 1}),
                {"number of replicas", Digest().add(std::int64_t{s.replicas}).value(),
                 std::to_string(s.replicas)}});
  const sparse::Csr<float> transpose = sparse::transpose(weights);
  const BlockShape block = s.problem.block;
  const RowCut rows = cut_evenly(row_counts(weights), s.problem.size.x, block.rows, s.ranks.size());
  const RowCut cols =
      cut_evenly(row_counts(transpose), s.problem.size.y, block.cols, s.ranks.size());
  Problem problem = s.problem;
  problem.grad_a = false;
  s.has_weights = false;
  s.fwd.set_weights(problem, weights, rows, cols);
  s.inputs = s.of_all(s.fwd.inputs());
  s.rows = s.of_all(s.fwd.rows());
  s.columns = s.of_all(s.fwd.columns());
  if (s.grad_a) {
    problem.grad_w = false;
    std::swap(problem.size.x, problem.size.y);
    problem.block = block.transposed();
    s.grad_a->set_weights(problem, transpose, cols, rows);
    s.grad_a_outputs = s.of_all(s.grad_a->outputs());
    s.grad_a_rows = s.of_all(s.grad_a->columns());
    s.grad_a_columns = s.of_all(s.grad_a->rows());
    s.set_senders(weights);
  }
  s.has_weights = true;
}

void ReplicatedLayer::set_values(std::span<const float> values) {
  State& s = *state_;
  s.require_weights("set_values");
  s.fwd.layer().set_values(values);
  if (s.grad_a) s.send_values();
}

void ReplicatedLayer::forward(MatrixView<const float> s, MatrixView<float> q) {
  State& state = *state_;
  state.require_weights("forward");
  state.check_operand("forward", "s", s, inputs(), s.cols);
  state.check_operand("forward", "q", q, outputs(), s.cols);
  check_no_overlap("forward", footprint("q", q), std::array{footprint("s", s)});
  state.fwd.product(s, q);
}

void ReplicatedLayer::grad_a(MatrixView<const float> q_grad, MatrixView<float> s_grad) {
  State& state = *state_;
  state.require_weights("grad_a");
  if (!state.grad_a) refuse_replicas("grad_a: the problem has no GradA");
  state.check_operand("grad_a", "q_grad", q_grad, outputs(), q_grad.cols);
  state.check_operand("grad_a", "s_grad", s_grad, inputs(), q_grad.cols);
  check_no_overlap("grad_a", footprint("s_grad", s_grad), std::array{footprint("q_grad", q_grad)});
  state.moved = Matrix<float>(state.grad_a->outputs().size(), q_grad.cols);
  state.grad_a->product(q_grad, state.moved.view());
  state.move_home(s_grad);
}

void ReplicatedLayer::grad_w(MatrixView<const float> q_grad, MatrixView<const float> s,
                             std::span<float> gradients) {
  State& state = *state_;
  state.require_weights("grad_w");
  if (!state.problem.grad_w) refuse_replicas("grad_w: the problem has no GradW");
  state.check_operand("grad_w", "q_grad", q_grad, outputs(), s.cols);
  state.check_operand("grad_w", "s", s, inputs(), s.cols);
  check_no_overlap("grad_w", footprint("gradients", gradients),
                   std::array{footprint("q_grad", q_grad), footprint("s", s)});
  state.fwd.layer().grad_w<float>(state.fwd.gather_run(q_grad), s, gradients);
}

int ReplicatedLayer::replicas() const { return state_->replicas; }

Range ReplicatedLayer::outputs() const {
  state_->require_weights("outputs");
  return state_->fwd.outputs();
}

Range ReplicatedLayer::inputs() const {
  state_->require_weights("inputs");
  return state_->fwd.inputs();
}

Range ReplicatedLayer::rows() const {
  state_->require_weights("rows");
  return state_->fwd.rows();
}

Range ReplicatedLayer::columns() const {
  state_->require_weights("columns");
  return state_->fwd.columns();
}

const sparse::Csr<float>& ReplicatedLayer::weights() const {
  state_->require_weights("weights");
  return state_->fwd.layer().weights();
}

}  // namespace tessera::distributed
