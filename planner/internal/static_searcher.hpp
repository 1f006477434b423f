#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "tessera/planner/internal/static_counted_search.hpp"
#include "tessera/planner/internal/static_row_order.hpp"

namespace tessera::planner::internal {

// The cheapest cuts of a pattern: of its rows as they are, and in an order of similar rows if that
// one is cheaper.
struct FoundCut {
  CountedSearch counted;
  std::optional<CountedSearch> in_similar_rows;

  std::int64_t cuts_counted() const {
    return counted.counted + (in_similar_rows ? in_similar_rows->counted : 0);
  }
};

// Searches the cuts of one pattern, with its rows as they are and in an order of similar rows, and
// keeps what it learns. One thread at a time may use it.
class StaticSearcher {
 public:
  // The arrays of `pattern` must outlive the object.
  explicit StaticSearcher(const BlockPattern& pattern) : counts_(pattern) {}
  StaticSearcher(const StaticSearcher&) = delete;
  StaticSearcher& operator=(const StaticSearcher&) = delete;

  CutCounts& counts() { return counts_; }

  // Returns the cheapest cuts that were counted. The counts of `c` must be those of counts().
  FoundCut search(const StaticCase& c, const StaticLimits& limits);

  // Returns the tiles of the pattern's blocks in the cheapest cut that was found: in the order of
  // similar rows, if that is asked for.
  StaticAssignment assignment_of(const StaticCase& c, const FoundCut& found, bool similar);
  StaticAssignment assignment_of(const StaticCase& c, const FoundCut& found) {
    return assignment_of(c, found, found.in_similar_rows.has_value());
  }

 private:
  struct SimilarRows {
    explicit SimilarRows(DerivedPattern derived)
        : pattern(std::move(derived)), counts(pattern.view()) {}
    SimilarRows(const SimilarRows&) = delete;
    SimilarRows& operator=(const SimilarRows&) = delete;
    DerivedPattern pattern;
    CutCounts counts;
  };
  SimilarRows* similar();

  CutCounts counts_;
  bool is_ordered_ = false;  // whether an order was looked for
  std::unique_ptr<SimilarRows> similar_;
  // Corrections of earlier searches, by whether these have GradA, GradW, and GradA alone.
  std::map<std::tuple<bool, bool, bool>, Corrections> corrections_;
};

}  // namespace tessera::planner::internal
