#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/no_fit.hpp"

namespace tessera::planner::internal {

// Values next to one that fits which are tried one by one, because divisors matter.
inline constexpr std::int64_t kScan = 64;
// Examined partitions and boxes after which a try counts as not fitting. Plans for chips of 1472
// tiles take some thousand.
inline constexpr std::int64_t kTrySearch = 20'000;

// Tries changes of a request that has no plan, one kind at a time. Each answer is a change that was
// planned, or nothing when no value was found that fits. See explain_no_fit for the rules.
class Relaxer {
 public:
  explicit Relaxer(Asked asked) : asked_(std::move(asked)) {}

  std::optional<Relaxation> more_tiles();
  std::optional<Relaxation> smaller_batch();
  std::optional<Relaxation> more_memory(Bytes least_temp_in_tile);
  std::optional<Relaxation> other_block(std::int64_t side);
  std::optional<Relaxation> batch_in_parts();
  std::optional<Relaxation> no_pins();
  std::optional<Relaxation> memory_and_parts();

  std::int64_t plans_made() const { return plans_made_; }

 private:
  bool fits(const Asked& asked);
  std::optional<Relaxation> planned(RelaxationKind kind, const Asked& asked);
  Asked with_batch_of(std::int64_t grains) const;
  std::int64_t z_grain() const;
  std::int64_t batch_grains() const { return ceil_div(asked_.problem.size.z, z_grain()); }
  // Fewest even parts of the batch that fit.
  std::optional<std::int64_t> fewest_parts(const Options& options);
  std::optional<Relaxation> in_parts(RelaxationKind kind, const Options& options);

  Asked asked_;
  std::int64_t plans_made_ = 0;
};

// The least value in (none, most] that fits, when all above a fitting one fit too and `none` does
// not. Steps double until one fits; then bisection: 2 * log2(answer - none) calls.
std::optional<std::int64_t> least_fitting(std::int64_t none, std::int64_t most,
                                          const std::function<bool(std::int64_t)>& fits);

}  // namespace tessera::planner::internal
