#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/planner/no_fit.hpp"

namespace tessera::planner {

// What a term of the plan would change by if one dimension alone were cut finer: the next legal
// count, with as many tiles as that takes.
struct FinerCut {
  Axis axis = Axis::X;
  std::int64_t from = 0, to = 0;  // parts
  Cycles change;                  // of the term; negative: it falls

  friend bool operator==(const FinerCut&, const FinerCut&) = default;
};

// One term of the plan and what drives it.
struct TermShare {
  Pass pass = Pass::Fwd;
  std::string name;
  Cycles cycles;
  double share = 0;                 // of the plan's cycles; 0 for a plan of no cycles
  Bytes temp;                       // while the step runs
  std::vector<FinerCut> finer_cut;  // x, y, z as far as they can be cut finer

  friend bool operator==(const TermShare&, const TermShare&) = default;
  // The cut that makes the term fall most for each tile it takes; else the one that makes it grow
  // most; nullptr for a term that no cut changes.
  const FinerCut* driver() const;
};

// A term of another plan against the same term of the winner.
struct TermChange {
  Pass pass = Pass::Fwd;
  std::string name;
  Cycles more;  // negative: the other plan is cheaper here

  friend bool operator==(const TermChange&, const TermChange&) = default;
};

// Another plan of the same request.
struct Alternative {
  MethodChoice methods;
  Plan plan;
  Cycles loses;                   // against the winner; the sum over `terms`
  std::vector<TermChange> terms;  // all that differ, most lost first, most gained last

  friend bool operator==(const Alternative&, const Alternative&) = default;
};

// The best that one combination of methods can do, or the limit that rules it out.
struct MethodVerdict {
  MethodChoice methods;
  bool chosen = false;
  std::optional<Alternative> best;
  std::optional<Obstacle> obstacle;  // exactly when there is no best

  friend bool operator==(const MethodVerdict&, const MethodVerdict&) = default;
};

// One limit that is lifted to see what it costs.
enum class LiftedLimit {
  OneMoreTile,
  TwiceTheTiles,
  TemporaryMemory,  // availableMemoryProportion is 1
  TileMemory,       // neither temporary nor resident data are bounded
  Words,            // words of the same bytes hold any number
  Pins,             // no planConstraints
  BucketSharing     // sharedBuckets left open
};
std::string to_string(LiftedLimit limit);

// The best plan without one limit. A limit binds when lifting it gains cycles.
struct Lifted {
  LiftedLimit limit = LiftedLimit::OneMoreTile;
  Cycles gain;  // winner - best. Negative only where
                // PopLibsQuirks::double_memory_bound ends at a smaller bound on the larger machine
  MethodChoice methods;
  Dims partition;  // of that best plan

  friend bool operator==(const Lifted&, const Lifted&) = default;
  bool binds() const { return gain.value > 0; }
};

// Why a plan is what it is.
struct Explanation {
  std::string request;  // the layer and the machine in words
  Plan plan;
  MethodChoice methods;                 // of the plan
  std::int64_t tiles = 0;               // of the machine
  Bytes temp_bound;                     // that the plan was found under
  std::vector<TermShare> terms;         // every term of every pass, in running order
  std::vector<Alternative> runners_up;  // the best three others: another partition or other methods
  std::vector<MethodVerdict> methods_tried;  // in the order they are tried
  std::vector<Lifted> limits;                // those that apply to the request
  std::int64_t partitions = 0;               // that were looked at, over all methods

  // A plan with two layouts: the above is of Fwd's, this is of GradA's; each is explained among the
  // plans for its own passes. And the best plan with one layout, which loses this much.
  std::vector<Explanation> backward;
  std::optional<Cycles> one_layout_loses;

  friend bool operator==(const Explanation&, const Explanation&) = default;
};

// Explains a plan that plan() returned for this very request. Every figure is exact: all partitions
// of all methods are looked at, and changed requests are planned (under the same search limit).
// A plan that is not the best (the search limit was reached) is explained too; then others lose a
// negative number of cycles.
// Error{InvalidArgument} when `plan` is no plan of the request.
// Cost: a few microseconds for each of up to some ten thousand partitions, and up to four calls of
// plan(): some tens of milliseconds for a whole chip. Deterministic; allocates; thread-safe.
Explanation explain(const Problem& problem, const device::Machine& machine, const Options& options,
                    const PatternStats* stats, const Plan& plan);

// Terms, runners-up, methods and limits, a line each.
std::string to_text(const Explanation& explanation);
// The same as JSON: an object with the fields above in camelCase.
std::string to_json(const Explanation& explanation);
std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

}  // namespace tessera::planner
