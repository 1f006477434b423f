#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/bench/layer/grid_cases.hpp"

namespace tessera::bench {

// The median seconds of one case: ours, and those of every other library that supports it. All run
// in turns on one thread, by its processor time, after their results were checked.
struct GridResult {
  GridCase grid_case;
  double layer = 0, call = 0;  // a pass of the layer; one call on the caller's matrix, or 0
  struct Other {
    std::string name;
    double seconds = 0;
    bool is_dense = false;
  };
  std::vector<Other> others;
  double peak = 0;  // float multiply-add peak of this core, operations a second
  double flops = 0;

  // The fastest other library that multiplies stored values only; without MKL unless asked for, as
  // it is in no free part of Debian. Empty name: there is none.
  Other best_sparse(bool with_mkl = false) const;
  // Its time by the layer's: above 1 the layer is faster.
  double ratio(bool with_mkl = false) const { return best_sparse(with_mkl).seconds / layer; }
};

// Measures one case for about a quarter of a second. Throws std::runtime_error if the result of
// another library, or of our product on the same operands, is wrong.
GridResult run_grid_case(const GridCase& c);

// Returns one line of the raw table, and its head: columns separated by tabs.
std::string grid_head();
std::string grid_line(const GridResult& result);

// The cases of a grid that a run takes: of those whose group and name hold `only`, one of so many
// shards, about as many in each.
struct GridChoice {
  int shard = 0, shards = 1;
  std::string only;
};
// Reads "3/12" as the third of twelve. Throws std::runtime_error for anything else.
GridChoice parse_shard(const std::string& text);

// Calls run() for the chosen cases, in their order.
void for_chosen(const std::vector<GridCase>& cases, const GridChoice& choice,
                const std::function<void(const GridCase&)>& run);

// Runs the chosen cases, prints a line for each as it ends, and then the summary.
void run_grid(const std::vector<GridCase>& cases, const GridChoice& choice);

// Prints, for each group and number of columns, the geometric mean of ratio(), the share of cases
// lost by more than 5 %, and the worst; then every case that was lost, the worst first.
void print_grid_summary(const std::vector<GridResult>& results);

}  // namespace tessera::bench
