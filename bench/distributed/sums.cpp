#include <fmt/format.h>
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <vector>

#include "tessera/bench/distributed/parts.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/distributed/tree_sum.hpp"

namespace tessera::bench {
namespace {

template <class Body>
double mean(distributed::Communicator& ranks, int runs, const Body& body) {
  body();
  ranks.barrier("turn");
  const auto all = [&] {
    for (int i = 0; i < runs; ++i) body();
  };
  return slowest(ranks, seconds(all, Clock::Wall) / runs);
}

}  // namespace

// One leaf a rank: what the tree costs beyond the sums of a rank's own leaves. Both sums begin with
// a list that was just written where the sum will be.
bool run_tree_sums(distributed::Communicator& ranks, int turns) {
  Report report;
  distributed::SumMemory memory;
  for (const std::int64_t bytes : {16 << 10, 256 << 10, 1 << 20, 4 << 20}) {
    const auto length = bytes / 4;
    std::vector<float> leaf(std::size_t(length), 1.5f), sum(leaf.size());
    const int runs = bytes > (1 << 20) ? 5 : 30;
    std::vector<double> ratios, ours, theirs;
    for (int i = 0; i < turns; ++i) {
      ours.push_back(mean(ranks, runs, [&] {
        const auto write_leaf = [&](std::int64_t, std::span<float> values) {
          std::ranges::copy(leaf, values.begin());
        };
        distributed::tree_sum(ranks, ranks.size(), sum, write_leaf, memory);
      }));
      theirs.push_back(mean(ranks, runs, [&] {
        std::ranges::copy(leaf, sum.begin());
        MPI_Allreduce(MPI_IN_PLACE, sum.data(), int(length), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }));
      ratios.push_back(ours.back() / theirs.back());
    }
    for (auto* list : {&ratios, &ours, &theirs}) std::sort(list->begin(), list->end());
    const auto middle = std::size_t(turns / 2);
    if (ranks.rank() == 0) {
      fmt::print("{} KiB, {} ranks, ms: tree {:.3f}, MPI_Allreduce {:.3f}\n", bytes >> 10,
                 ranks.size(), 1e3 * ours[middle], 1e3 * theirs[middle]);
      report.tell("  tree by MPI_Allreduce, least times", ours[0] / theirs[0]);
      report.at_most("  tree by MPI_Allreduce", ratios[middle], ranks.size() <= 2 ? 1.15 : 1.3);
    }
  }
  return report.all_met();
}

}  // namespace tessera::bench
