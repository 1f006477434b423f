#include "tessera/planner/options.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner {

namespace {

constexpr std::int64_t kMostSearch = std::int64_t{1} << 62;
constexpr double kMostOversize = 1000;
constexpr std::int64_t kMostPatterns = 2147483647;

[[noreturn]] void throw_range(const char* key, const std::string& value, const char* range) {
  throw_invalid(fmt::format("{} is {}; it must be in {}", key, value, range));
}

}  // namespace

Options sparse_options() {
  Options options;
  options.constraints.use_dense = false;
  return options;
}

void check_options(const Options& options) {
  internal::check_memory_share(options.available_memory_proportion);
  const double oversize = options.meta_info_bucket_oversize_proportion;
  if (!(oversize >= 0 && oversize <= kMostOversize))
    throw_range("metaInfoBucketOversizeProportion", fmt::format("{}", oversize), "0..1000");
  if (!(options.bucket_confidence >= 0 && options.bucket_confidence < 1))
    throw_range("bucketConfidence", fmt::format("{}", options.bucket_confidence), "[0, 1)");
  if (options.pattern_count < 1 || options.pattern_count > kMostPatterns)
    throw_range("patternCount", fmt::format("{}", options.pattern_count), "1..2147483647");
  if (options.search_limit < 1 || options.search_limit > kMostSearch)
    throw_range("searchLimit", fmt::format("{}", options.search_limit), "1..2^62");
  if (!options.enable_structured_rearrangements && options.poplibs_parity)
    throw_invalid(
        "enableStructuredRearrangements is false; with popLibsParity it must be true, because "
        "PopLibs plans the same for both; leave one of the two out");
}

}  // namespace tessera::planner
