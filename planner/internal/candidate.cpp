#include "tessera/planner/internal/candidate.hpp"

namespace tessera::planner::internal {
namespace {

Candidate element_candidate(const Problem& problem, const device::Machine& machine,
                            const Options& options) {
  Candidate candidate;
  candidate.grad_a = options.shared_buckets ? Method::ElementTranspose : Method::ElementGradA;
  candidate.grain.z = machine.vector_width(problem.data_type);
  return candidate;
}

Candidate block_candidate(BlockShape block) {
  return {Method::BlockFwd,
          Method::BlockTranspose,
          Method::BlockGradW,
          {1, block.rows, block.cols, 1},
          false};
}

// Batch columns that BlockGradWAmp takes in one go.
std::int64_t amp_grain(DataType type) { return type == DataType::Float ? 8 : 16; }

bool amp_fits(const Problem& problem, BlockShape block, const Options& options) {
  // PopSparse tries the coarser batch grain even where its only use, GradW, is not planned.
  if (!problem.grad_w && options.quirks == PopLibsQuirks{}) return false;
  const bool whole = problem.size.z % amp_grain(problem.data_type) == 0;
  return (whole || !options.quirks.even_batch_parts) && block.rows % 4 == 0 && block.cols % 4 == 0;
}

}  // namespace

BlockShape block_to_use(BlockShape block, DataType type) {
  if (block.rows != block.cols) return block;
  for (const std::int64_t side : {16, 8, 4})
    if (block.rows % side == 0 && (side < 16 || type == DataType::Half)) return {side, side};
  return block;
}

std::vector<Candidate> candidates(const Problem& problem, const device::Machine& machine,
                                  const Options& options) {
  std::vector<Candidate> methods;
  if (problem.is_element_wise()) {
    methods.push_back(element_candidate(problem, machine, options));
  } else {
    const BlockShape block = block_to_use(problem.block, problem.data_type);
    methods.push_back(block_candidate(block));
    if (amp_fits(problem, block, options)) {
      methods.push_back(block_candidate(block));
      methods.back().grad_w = Method::BlockGradWAmp;
      methods.back().grain.z = amp_grain(problem.data_type);
    }
  }
  const std::optional<bool> pinned = options.constraints.grad_w_exchange_buckets;
  std::vector<Candidate> result;
  for (const Candidate& method : methods)
    for (const bool buckets : {false, true}) {
      if (pinned ? *pinned != buckets : buckets && !problem.grad_w) continue;
      result.push_back(method);
      result.back().exchange_buckets = buckets;
    }
  return result;
}

}  // namespace tessera::planner::internal
