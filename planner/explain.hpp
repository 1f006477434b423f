#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/planner/no_fit.hpp"

namespace tessera::planner {

// The change of a term of the plan if one dimension alone were cut finer: into its next legal count
// of parts, on as many tiles as that takes.
struct FinerCut {
  Axis axis = Axis::X;
  std::int64_t from = 0, to = 0;  // parts
  Cycles change;                  // of the term; negative if it falls

  friend bool operator==(const FinerCut&, const FinerCut&) = default;
};

// One term of the plan, together with its response to finer cuts.
struct TermShare {
  Pass pass = Pass::Fwd;
  Term name = Term::Multiply;
  Cycles cycles;
  double share = 0;                 // of the plan's cycles, 0 .. 1; 0 if the plan has none
  Bytes temp;                       // of one tile while the step runs
  std::vector<FinerCut> finer_cut;  // those of x, y and z that can be cut finer, in this order

  friend bool operator==(const TermShare&, const TermShare&) = default;

  // Returns the cut that makes the term fall most per additional tile; if no cut makes it fall, the
  // one that makes it grow most; nullptr if no cut changes it.
  const FinerCut* driver() const;
};

// The difference between a term of another plan and the same term of the winner.
struct TermChange {
  Pass pass = Pass::Fwd;
  Term name = Term::Multiply;
  Cycles more;  // negative: the other plan is cheaper here

  friend bool operator==(const TermChange&, const TermChange&) = default;
};

// Another plan of the same request.
struct Alternative {
  MethodChoice methods;
  Plan plan;
  Cycles loses;                   // cycles more than the winner; the sum over `terms`
  std::vector<TermChange> terms;  // all that differ, largest loss first, largest gain last

  friend bool operator==(const Alternative&, const Alternative&) = default;
};

// The best plan of one combination of methods, or the limit that rules the combination out.
struct MethodVerdict {
  MethodChoice methods;
  bool chosen = false;
  std::optional<Alternative> best;
  std::optional<Obstacle> obstacle;  // set exactly if `best` is empty

  friend bool operator==(const MethodVerdict&, const MethodVerdict&) = default;
};

// The limits that explain() lifts, one at a time, to find their cost.
enum class LiftedLimit {
  OneMoreTile,      // a machine with one more tile
  TwiceTheTiles,    // a machine with twice the tiles
  TemporaryMemory,  // availableMemoryProportion is 1
  TileMemory,       // neither temporary nor resident data are bounded
  Words,            // words of the same size hold any number
  Pins,             // no planConstraints
  BucketSharing     // sharedBuckets is open
};
std::string to_string(LiftedLimit limit);

// The best plan without one limit. A limit binds if lifting it gains cycles.
struct Lifted {
  LiftedLimit limit = LiftedLimit::OneMoreTile;
  Cycles gain;  // winner - best; never negative
  MethodChoice methods;
  Dims partition;  // of that best plan

  friend bool operator==(const Lifted&, const Lifted&) = default;
  bool binds() const { return gain.value > 0; }
};

// The explanation of a plan: its terms, its rivals and its limits.
struct Explanation {
  std::string request;  // the layer and the machine in words
  Plan plan;
  MethodChoice methods;                 // of the plan
  std::int64_t tiles = 0;               // of the machine
  Bytes temp_bound;                     // upper bound on temporary memory under which it was found
  std::vector<TermShare> terms;         // every term of every pass, in the order they run
  std::vector<Alternative> runners_up;  // the best three with another partition or other methods
  std::vector<MethodVerdict> methods_tried;  // in the order in which they are tried
  std::vector<Lifted> limits;                // the lifted limits that apply to the request
  std::int64_t partitions = 0;               // examined, over all methods

  // The explanation of GradA's layout if the plan has two layouts, otherwise empty. The fields
  // above then explain the plan that runs: all its terms, and the methods of Fwd's layout. While
  // one layout is explained the other one stays, and other plans are compared by the cycles of the
  // whole layer.
  std::vector<Explanation> backward;

  // For a plan with two layouts: the cycles that the best plan with one layout takes more. Empty if
  // there is no such plan.
  std::optional<Cycles> one_layout_loses;

  friend bool operator==(const Explanation&, const Explanation&) = default;
};

// Explains a plan that plan() returned for the same request. Every figure is exact: explain()
// examines all partitions of all methods and plans the changed requests under the same search
// limit. For a plan with one layout, changed requests are planned with one layout. A plan that is
// not the best, because the search limit was reached, is explained as well; other plans then lose a
// negative number of cycles.
//
// Throws Error{InvalidArgument} if `plan` is not a plan of the request. Costs a few microseconds
// for each of up to some ten thousand partitions and up to four calls of plan(), which is some tens
// of milliseconds for a whole chip; a plan with two layouts costs two such explanations and
// four calls of plan(). The result is deterministic. Allocates. Any number of threads may call it.
Explanation explain(const Problem& problem, const device::Machine& machine, const Options& options,
                    const PatternStats* stats, const Plan& plan);

// Returns the terms, the runners-up, the methods and the limits, one line each.
std::string to_text(const Explanation& explanation);

// Returns the same as JSON: an object with the fields of Explanation in camelCase.
std::string to_json(const Explanation& explanation);

}  // namespace tessera::planner
