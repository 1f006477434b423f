#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera::bench {

// One line of a report; without a bar it is only told.
struct Line {
  std::string name, figure, bar;
  bool is_kept = true;
};
using Lines = std::vector<Line>;

// The least processor time of `times` runs, in seconds: all of this runs on one core, and others
// may be using the computer.
double best_seconds(int times, const std::function<void()>& run);

// 16 million shuffled entries, beside SciPy run by `python` (empty: left out) and Eigen where it
// was found at build time.
Lines conversion_lines(const std::string& python);
// CSR gemv beside the rate at which one core reads the same bytes.
Lines gemv_lines();
// Views of few and of many entries, lookups, contraction along every dimension.
Lines access_lines();
// 100 million entries of a 10000 x 10000 x 100 tensor at rest.
Lines memory_lines();

}  // namespace tessera::bench
