#pragma once

#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/bench/published/published.hpp"

namespace tessera::bench {

// The settings of a repetition with one of them changed.
struct Variation {
  std::string name;
  Repetition how;
};

// Returns one variation for each constant that the published rates depend on: its former value, or
// a machine without its term.
std::vector<Variation> variations(const Repetition& how);

// Returns the rate, in 10^12 flops per second, that a run reaches on a machine which differs in
// `sync`, `launch` and `arrange_bytes_per_cycle` alone. The steps of a run depend on none of them.
double repriced(const RepeatedRun& run, const device::Machine& from, const device::Machine& to);

// Two constants derived from all points but those of one group, and how they price that group.
struct LeftOut {
  std::string group;  // points of one block size and type
  std::int64_t arrange_bytes_per_cycle = 0;
  Cycles sync;
  ErrorSummary errors;  // of the group
};

// Derives `arrange_bytes_per_cycle` (1 to 4) and `sync` (0 to 1000 in hundreds) without each group
// in turn: those with the least sum of logarithmic errors. Every point needs a run.
std::vector<LeftOut> leave_one_group_out(const std::vector<Repeated>& points,
                                         const device::Machine& machine);

// Repeats the points under every variation and returns a table of the errors in percent, and the
// result of leave_one_group_out. Costs a repetition of all points for each variation.
std::string sensitivity_text(const std::vector<PublishedPoint>& points, const Repetition& how,
                             Executor& executor);

}  // namespace tessera::bench
