#include "tessera/distributed/cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/even_part.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/distributed/tree_sum.hpp"

namespace tessera::distributed {
namespace {

std::string why_not_leaves(const Cut& cut, const Problem& problem) {
  if (cut.replicas != 1)
    return "with leaves every rank has all rows and columns of the weights; leave out replicas";
  if (cut.leaves < 0 || cut.leaves > kMostLeaves)
    return fmt::format("there are {} leaves; give 1 to {}, or 0 to keep the batch whole",
                       cut.leaves, kMostLeaves);
  if (problem.size.z % 2 != 0)
    return fmt::format(
        "a batch of {} columns cannot be split over ranks with the same bits for any number of "
        "them; it must be even",
        problem.size.z);
  return {};
}

std::string why_not_replicas(const Cut& cut, const Problem& problem, std::int64_t ranks) {
  if (problem.data_type != DataType::Float)
    return fmt::format(
        "ranks with replicas add up partial sums, which only layers of floats have, not {}; use 1 "
        "replica",
        to_string(problem.data_type));
  if (cut.replicas < 0 || (cut.replicas > 0 && ranks % cut.replicas != 0))
    return fmt::format("{} replicas do not divide {} ranks; give a divisor, or 0 for the cheapest",
                       cut.replicas, ranks);
  return {};
}

}  // namespace

RowCut cut_evenly(std::span<const std::int64_t> row_begin, std::int64_t rows,
                  std::int64_t block_rows, int ranks) {
  if (ranks < 1 || row_begin.empty() || row_begin.front() != 0)
    throw_invalid(
        fmt::format("rows cannot be cut for {} ranks; 1 or more can be, by the positions "
                    "of rows that begin with 0",
                    ranks));
  if (row_begin.back() == 0) return cut_rows(rows, block_rows, ranks);
  RowCut cut;
  std::size_t row = 0;
  for (int rank = 1; rank < ranks; ++rank) {
    const double target = double(row_begin.back()) * rank / ranks;
    while (row + 1 < row_begin.size() &&
           double(row_begin[row + 1]) - target <= target - double(row_begin[row]))
      ++row;
    cut.begin.push_back(std::min(std::int64_t(row) * block_rows, rows));
  }
  cut.begin.push_back(rows);
  return cut;
}

RowCut cut_rows(std::int64_t rows, std::int64_t block_rows, int ranks) {
  RowCut cut;
  const std::int64_t all = ceil_div(rows, block_rows);
  for (int rank = 0; rank < ranks; ++rank)
    cut.begin.push_back(std::min(even_part(all, ranks, rank).end * block_rows, rows));
  return cut;
}

void check(const RowCut& cut, std::int64_t rows, std::int64_t block_rows, int ranks) {
  const auto refuse = [](const std::string& why) { throw_invalid("cut of rows: " + why); };
  if (cut.ranks() != ranks)
    refuse(fmt::format("it has {} runs, but there are {} ranks", cut.ranks(), ranks));
  if (cut.begin.front() != 0 || cut.rows() != rows)
    refuse(fmt::format("it goes from {} to {}, not from 0 to {}", cut.begin.front(), cut.rows(),
                       rows));
  for (int rank = 0; rank < ranks; ++rank) {
    const Range run = cut.of(rank);
    if (run.end < run.begin || (run.begin % block_rows != 0 && run.begin != rows))
      refuse(fmt::format("run {} is [{}, {}), which is not one of whole blocks of {} rows", rank,
                         run.begin, run.end, block_rows));
  }
}

std::string to_string(const Cut& cut) {
  if (cut.leaves > 0) return fmt::format("{} leaves of the batch", cut.leaves);
  if (cut.replicas == 0) return "the cheapest number of replicas of runs of rows";
  if (cut.replicas > 1) return fmt::format("{} replicas of runs of rows", cut.replicas);
  return "runs of rows";
}

std::string why_not(const Cut& cut, const Problem& problem, int ranks) {
  if (cut.leaves != 0) return why_not_leaves(cut, problem);
  if (cut.replicas == 1) return {};
  return why_not_replicas(cut, problem, ranks_of_group(0, problem.size.g, ranks).size());
}

Range leaf_columns(const Cut& cut, std::int64_t batch, std::int64_t leaf) {
  const Range pairs = even_part(batch / 2, cut.leaves, leaf);
  return {2 * pairs.begin, 2 * pairs.end};
}

Range ranks_of_group(std::int64_t group, std::int64_t groups, int ranks) {
  if (groups % ranks == 0) {
    const std::int64_t rank = group / (groups / ranks);
    return {rank, rank + 1};
  }
  if (ranks % groups != 0) return {0, ranks};
  const std::int64_t each = ranks / groups;
  return {group * each, (group + 1) * each};
}

double received_values(const Dims& size, int ranks, int replicas, Pass pass) {
  const double c = replicas, all = ranks;
  double in = double(size.y) * double(size.z), out = double(size.x) * double(size.z);
  if (pass == Pass::GradA) std::swap(in, out);
  // With replicas, a rank's own sums of dS travel, too, if other ranks have these rows of S.
  const bool moves = pass == Pass::GradA && replicas > 1 && replicas * replicas != ranks;
  return in / c * (1 - c / all) + out * c / all * (1 - 1 / c) + (moves ? out / all : 0);
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

}  // namespace tessera::distributed
