#include "tessera/tools/block_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/tools/block_study.hpp"
#include "tessera/tools/host_forecast.hpp"

namespace tessera::tools {
namespace {

// The cost of one block: cycles or seconds. Empty: there is no plan.
struct Candidate {
  BlockShape block;
  std::optional<double> cost;
};

std::vector<Candidate> planned(const LayerArguments& a, const planner::Options& base,
                               const std::optional<sparse::Csr<double>>& ones) {
  BlockStudy study(a, base);
  std::vector<Candidate> candidates;
  for (const std::int64_t side : kBlockSides) {
    const BlockShape block{side, side};
    const BlockPlan found =
        ones ? study.plan_pattern(*ones, block) : study.plan_random(block, a.density);
    candidates.push_back({block, {}});
    if (found.plan) candidates.back().cost = double(found.cycles.value);
  }
  return candidates;
}

std::vector<Candidate> forecast(const LayerArguments& a,
                                const std::optional<sparse::Csr<double>>& ones) {
  std::vector<Candidate> candidates;
  for (const std::int64_t side : kBlockSides) {
    Problem problem = problem_of(a);
    problem.size.g = 1;  // every group takes as long
    problem.block = {side, side};
    const Dims size = problem.size_in_blocks();
    const auto blocks_as = [&](BlockShape block) {
      if (ones) return double(in_whole_blocks(*ones, block).blocks());
      return a.density * double(size.x / block.rows) * double(size.y / block.cols);
    };
    candidates.push_back({problem.block, host_plan(problem, blocks_as).ways.front().seconds()});
  }
  return candidates;
}

std::string words_of(const Candidate& candidate, bool is_host) {
  const std::string name = fmt::format("{0}x{0}", candidate.block.rows);
  if (!candidate.cost) return name + " has no plan";
  if (is_host) return fmt::format("{} {:.4f} ms", name, *candidate.cost * 1e3);
  return fmt::format("{} {} cycles", name, fmt::group_digits(std::int64_t(*candidate.cost)));
}

}  // namespace

std::string choose_block(LayerArguments& a, const planner::Options& base) {
  if (!a.chooses_block) return {};
  LayerArguments sized = a;
  const auto ones = load_pattern(sized);
  std::vector<Candidate> candidates =
      is_host(a) ? forecast(sized, ones) : planned(sized, base, ones);
  std::ranges::sort(candidates, {}, [](const Candidate& c) {
    return std::tuple(!c.cost, c.cost.value_or(0), c.block.rows);
  });
  a.chooses_block = false;
  a.block = candidates.front().block;
  std::string note = "block size by " + std::string(is_host(a) ? "forecast" : "planned cycles");
  for (const Candidate& candidate : candidates)
    note += (&candidate == &candidates.front() ? ": " : ", ") + words_of(candidate, is_host(a));
  return note;
}

}  // namespace tessera::tools
