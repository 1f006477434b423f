#pragma once

#include <cstdint>
#include <optional>

#include "tessera/base/least_fitting.hpp"
#include "tessera/planner/internal/planner_search.hpp"
#include "tessera/planner/no_fit.hpp"

namespace tessera::planner::internal {

// Number of neighbours of a value that are tried one by one, because divisors matter.
inline constexpr std::int64_t kScan = 64;

// Number of examined partitions and boxes after which a trial counts as not fitting. Plans for
// chips of 1472 tiles take some thousand.
inline constexpr std::int64_t kTrySearch = 20'000;

// Tries changes of a request that has no plan, one kind at a time. Each function returns a change
// that has been planned, or nullopt if no value fits. The comment of explain_no_fit() gives the
// rules.
class Relaxer {
 public:
  explicit Relaxer(Asked asked) : asked_(std::move(asked)) {}

  // Returns the tiles of the preset of the machine's name; the most that any machine may have if
  // there is none, because a machine that somebody describes can be described with more.
  std::int64_t most_tiles() const;
  std::optional<Relaxation> more_tiles();
  std::optional<Relaxation> smaller_batch();
  std::optional<Relaxation> more_memory(Bytes least_temp_in_tile);
  std::optional<Relaxation> other_block(std::int64_t side);
  std::optional<Relaxation> lower_density();
  std::optional<Relaxation> batch_in_parts();
  // Returns true if the request has no dense plan only because its options rule that out.
  bool may_run_dense() const;
  std::optional<Relaxation> run_dense();
  std::optional<Relaxation> no_pins();
  std::optional<Relaxation> memory_and_parts();

  std::int64_t plans_made() const { return plans_made_; }

 private:
  bool fits(const Asked& asked);
  std::optional<Relaxation> planned(RelaxationKind kind, const Asked& asked);
  Asked with_batch_of(std::int64_t grains) const;
  Asked dense() const;
  std::int64_t z_grain() const;
  std::int64_t batch_grains() const { return ceil_div(asked_.problem.size.z, z_grain()); }

  // Returns the fewest even parts of the batch that fit.
  std::optional<std::int64_t> fewest_parts(const Options& options);
  std::optional<Relaxation> in_parts(RelaxationKind kind, const Options& options);

  Asked asked_;
  std::int64_t plans_made_ = 0;
};

}  // namespace tessera::planner::internal
