#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/distributed/parts.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

struct Layer {
  std::int64_t x, y, z, block;
  double density;
};

constexpr Layer kLayers[] = {{1024, 768, 256, 1, 0.1},  {1024, 1024, 64, 16, 0.1},
                             {777, 555, 97, 1, 0.02},   {512, 2048, 130, 4, 0.2},
                             {2048, 512, 193, 1, 0.05}, {640, 640, 300, 8, 0.3}};

// All three results of a layer, and the most bytes that a rank received for S.
struct Results {
  Matrix<float> q, s_grad;
  std::vector<float> gradients;
  std::int64_t most_bytes = 0;

  bool same_bits(const Results& other) const {
    return q == other.q && s_grad == other.s_grad && gradients == other.gradients;
  }
};

Results run(const Layer& l, int count) {
  const Problem problem{.size = {1, l.x, l.y, l.z},
                        .block = {l.block, l.block},
                        .density = l.density,
                        .data_type = DataType::Float,
                        .grad_a = true,
                        .grad_w = true};
  const Dims size = problem.size_in_blocks();
  const auto weights = sparse::random_pattern(size.x, size.y, problem.block, l.density, 1);
  const auto s = random_matrix<float>(l.y, l.z, 2), q_grad = random_matrix<float>(l.x, l.z, 3);
  Results all{Matrix<float>(l.x, l.z), Matrix<float>(l.y, l.z),
              std::vector<float>(weights.values.size())};
  std::mutex mutex;
  distributed::run_ranks(count, [&](distributed::Communicator& ranks) {
    const auto executor = sequential();
    distributed::RankLayer layer(problem, host::read_host_cpu(), *executor, ranks);
    layer.set_weights(sparse::checked(weights));
    const Range rows = layer.outputs(), cols = layer.inputs();
    const auto part = [](auto view, Range of) { return view.sub(of, {0, view.cols}); };
    const auto first = std::size_t(weights.row_begin[std::size_t(rows.begin / l.block)]) *
                       std::size_t(l.block * l.block);
    const auto times = layer.forward<float>(part(s.view(), cols), part(all.q.view(), rows));
    layer.grad_a<float>(part(q_grad.view(), rows), part(all.s_grad.view(), cols));
    layer.grad_w<float>(part(q_grad.view(), rows), part(s.view(), cols),
                        std::span(all.gradients).subspan(first, std::size_t(layer.values())));
    const std::lock_guard lock(mutex);
    all.most_bytes = std::max(all.most_bytes, times.received_bytes);
  });
  return all;
}

// The bytes that the fullest rank receives in each pass of the problem.
std::map<Pass, double> most_bytes(const Problem& problem, int count,
                                  const distributed::Cut& cut = {}) {
  const Dims size = problem.size;
  std::vector<sparse::CheckedCsr<float>> weights;
  for (std::int64_t g = 0; g < size.g; ++g)
    weights.push_back(sparse::checked(sparse::random_pattern(
        size.x, size.y, problem.block, problem.density, std::uint64_t(g + 1))));
  std::map<Pass, double> most;
  std::mutex mutex;
  distributed::run_ranks(count, [&](distributed::Communicator& ranks) {
    const auto executor = sequential();
    distributed::RankLayer layer(problem, host::read_host_cpu(), *executor, ranks, cut);
    layer.set_weights(weights);
    Matrix<float> s(layer.facts().input_rows, size.z), q(layer.facts().output_rows, size.z);
    std::vector<float> gradients(std::size_t(layer.values()));
    const auto in = std::as_const(s).view(), out = std::as_const(q).view();
    for (const Pass pass : passes_of(problem)) {
      const auto times = pass == Pass::Fwd     ? layer.forward<float>(in, q.view())
                         : pass == Pass::GradA ? layer.grad_a<float>(out, s.view())
                                               : layer.grad_w<float>(out, in, gradients);
      const std::lock_guard lock(mutex);
      most[pass] = std::max(most[pass], double(times.received_bytes));
    }
  });
  return most;
}

}  // namespace

bool run_bits_and_bytes() {
  Report report;
  double equal = 0, runs = 0;
  for (const Layer& l : kLayers) {
    const Results one = run(l, 1);
    for (const int ranks : {2, 3, 4, 5, 8}) {
      ++runs;
      equal += one.same_bits(run(l, ranks)) ? 1 : 0;
    }
  }
  report.at_least(fmt::format("runs of 2 to 8 ranks with the bits of one, of {}", runs), equal,
                  runs);
  const Layer large{4096, 4096, 64, 1, 0.05};
  for (const int ranks : {2, 4, 16}) {
    const double bound = double(large.y * large.z * 4) * (ranks - 1) / ranks;
    report.at_most(fmt::format("bytes that a rank of {} receives by y z (P-1)/P", ranks),
                   double(run(large, ranks).most_bytes) / bound, 1.01);
  }
  const Problem problem{.size = {1, large.x, large.y, large.z},
                        .density = large.density,
                        .data_type = DataType::Float,
                        .grad_a = true,
                        .grad_w = true};
  const int replicas = distributed::cheapest_replicas(problem, 16);
  for (const auto& [pass, bytes] : most_bytes(problem, 16, {.replicas = replicas}))
    report.at_most(fmt::format("{}: bytes that a rank of 16 receives with {} replicas by y z / c + "
                               "x z c / P",
                               to_string(pass), replicas),
                   bytes / (4 * (double(large.y * large.z) / replicas +
                                 double(large.x * large.z) * replicas / 16)),
                   1.01);
  for (const int ranks : {4, 8}) {
    const Problem groups{
        .size = {4, 1024, 1024, 64}, .density = 0.05, .data_type = DataType::Float};
    const double bound = 4.0 * 1024 * 64 * (1 - 4.0 / ranks);  // S of the group, on ranks / 4 ranks
    report.at_most(fmt::format("bytes that a rank of {} receives with 4 groups", ranks),
                   most_bytes(groups, ranks)[Pass::Fwd], 1.01 * bound);
  }
  return report.all_met();
}

}  // namespace tessera::bench
