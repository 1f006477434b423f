#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/arrays/tensor/coo_tensor.hpp"

namespace tessera::bench {

// One line of a report; a figure without a bar is only printed.
struct Line {
  std::string name, figure, bar;
  bool is_kept = true;
};
using Lines = std::vector<Line>;

// Returns the least CPU time of `times` runs in seconds. Everything here runs on one core, and
// other programs may be using the computer.
double best_seconds(int times, const std::function<void()>& run);

// Returns the ratio of the least wall times of two bodies that run in turns on all cores. Other
// programs may be using the cores, and take time from most of the runs.
double ratio_of_best(const std::function<void()>& a, const std::function<void()>& b);

// Returns a tensor with evenly spread places, each moved a little; all values are 1.
arrays::CooTensor<float> spread(const std::vector<std::int64_t>& shape, std::int64_t entries);

// Converts 16 million shuffled entries, and compares with SciPy, run by `python` (left out if
// empty), and with Eigen if it was found at build time.
Lines conversion_lines(const std::string& python);
// Measures views of few and of many entries, lookups, and contraction along every dimension.
Lines access_lines();
// Measures operations on tensors: element-wise on all cores, sums over each dimension, and
// permutations.
Lines operation_lines();
// Measures the memory of a 10000 x 10000 x 100 tensor with 100 million entries.
Lines memory_lines();

}  // namespace tessera::bench
