#include "tessera/distributed/cut.hpp"

#include <fmt/format.h>

#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/distributed/tree_sum.hpp"

namespace tessera::distributed {
namespace {

std::string why_not_leaves(const Cut& cut, const Problem& problem) {
  if (cut.rows || cut.cols || cut.replicas != 1)
    return "with leaves every rank has all rows and columns of the weights; leave out rows, cols "
           "and replicas";
  if (cut.leaves < 0 || cut.leaves > TreeSum::kMostLeaves)
    return fmt::format("there are {} leaves; give 1 to {}, or 0 to keep the batch whole",
                       cut.leaves, TreeSum::kMostLeaves);
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

std::string to_string(const Cut& cut) {
  if (cut.leaves > 0) return fmt::format("{} leaves of the batch", cut.leaves);
  if (cut.replicas == 0) return "the cheapest number of replicas of runs of rows";
  if (cut.replicas > 1) return fmt::format("{} replicas of runs of rows", cut.replicas);
  return "runs of rows";
}

std::string why_not(const Cut& cut, const Problem& problem, int ranks) {
  if (cut.leaves != 0) return why_not_leaves(cut, problem);
  const std::int64_t of_group = ranks_of_group(0, problem.size.g, ranks).size();
  if (cut.replicas != 1) {
    if (std::string why = why_not_replicas(cut, problem, of_group); !why.empty()) return why;
  }
  try {
    if (cut.rows) check(*cut.rows, problem.size.x, problem.block.rows, int(of_group));
    if (cut.cols) check(*cut.cols, problem.size.y, problem.block.cols, int(of_group));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
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
  // With replicas, rows of dS travel to the ranks that have these rows of S.
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
