#include "tessera/planner/internal/candidate.hpp"

namespace tessera::planner::internal {
namespace {

Candidate element_candidate(const Problem& problem, const device::Machine& machine, Method grad_a) {
  Candidate candidate;
  candidate.grad_a = grad_a;
  candidate.grain.z = machine.vector_width(problem.data_type);
  return candidate;
}

Candidate block_candidate(BlockShape block, bool dense) {
  return {.fwd = Method::BlockFwd,
          .grad_a = Method::BlockTranspose,
          .grad_w = Method::BlockGradW,
          .block = block,
          .grain = {1, block.rows, block.cols, 1},
          .dense = dense};
}

// Returns the number of batch columns that BlockGradWAmp processes at a time.
std::int64_t amp_grain(DataType type) { return type == DataType::Float ? 8 : 16; }

bool amp_fits(const Problem& problem, BlockShape block, const Options& options) {
  if (!options.enable_structured_rearrangements) return false;  // the method's first step
  // PopLibs tries the coarser batch grain even where its only use, GradW, is not planned, and only
  // where it divides the batch.
  if (!problem.grad_w && !options.poplibs_parity) return false;
  const bool whole = problem.size.z % amp_grain(problem.data_type) == 0;
  return (whole || !options.poplibs_parity) && block.rows % 4 == 0 && block.cols % 4 == 0;
}

// Adds GradA on the forward words, or on separate words, which is faster and takes more memory. If
// the caller left this open, the planner tries both.
void add_element_methods(std::vector<Candidate>& methods, const Problem& problem,
                         const device::Machine& machine, const Options& options) {
  const bool open = problem.grad_a && !options.poplibs_parity;
  const bool shared = options.shared_buckets.value_or(true);
  const Method first = shared ? Method::ElementTranspose : Method::ElementGradA;
  methods.push_back(element_candidate(problem, machine, first));
  if (open && !options.shared_buckets)
    methods.push_back(element_candidate(problem, machine, Method::ElementGradA));
}

void add_block_methods(std::vector<Candidate>& methods, const Problem& problem,
                       const Options& options, const Candidate& plain) {
  methods.push_back(plain);
  if (!amp_fits(problem, plain.block, options)) return;
  methods.push_back(plain);
  methods.back().grad_w = Method::BlockGradWAmp;
  methods.back().grain.z = amp_grain(problem.data_type);
}

}  // namespace

BlockShape dense_block(DataType type) {
  const std::int64_t side = type == DataType::Float ? 8 : 16;
  return {side, side};
}

BlockShape block_to_use(BlockShape block, DataType type) {
  if (block.rows != block.cols) return block;
  for (const std::int64_t side : {16, 8, 4})
    if (block.rows % side == 0 && (side < 16 || type != DataType::Float)) return {side, side};
  return block;
}

std::vector<Candidate> candidates(const Problem& problem, const device::Machine& machine,
                                  const Options& options) {
  std::vector<Candidate> methods;
  const bool sparse_only = options.poplibs_parity;  // PopLibs never chooses dense blocks
  const std::optional<bool> dense = options.constraints.use_dense;
  if (sparse_only || !dense.value_or(false)) {
    if (problem.is_element_wise())
      add_element_methods(methods, problem, machine, options);
    else
      add_block_methods(methods, problem, options,
                        block_candidate(block_to_use(problem.block, problem.data_type), false));
  }
  if (!sparse_only && dense.value_or(true))
    add_block_methods(methods, problem, options,
                      block_candidate(dense_block(problem.data_type), true));
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
