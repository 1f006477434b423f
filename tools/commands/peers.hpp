#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/tools/options/progress.hpp"
#include "tessera/tools/run/arguments.hpp"

namespace tessera::tools {

// One library's run of one pass on this computer.
struct PeerTime {
  std::string name;     // "own", "dense (oneDNN)", "Eigen", "SciPy"
  double seconds = 0;   // median of the runs
  double spread = 0;    // half the range of the middle half of the runs, divided by seconds
  std::string verdict;  // of the result; empty: not checked
  bool is_wrong = false;
};

// All libraries on one pass; ours is the first.
struct PeerPass {
  Pass pass = Pass::Fwd;
  double useful_flops = 0;  // of the non-zeros
  std::vector<PeerTime> times;
};

struct PeerRun {
  std::string layer, computer;
  int threads = 1;
  double density = 0;                // of the layer
  std::string dense_kernel;          // and the type that it multiplies
  std::vector<PeerPass> passes;      // fewer after Ctrl-C
  std::vector<std::string> missing;  // libraries that are not here, each with its package
  bool is_checked = false;
  bool is_complete = true;

  bool has_wrong_result() const;
};

// Returns our layer beside the dense product. Returns no value if no pass was measured.
std::optional<report::DenseComparison> verdict_of(const PeerRun& run);

// Measures a layer on this computer beside the libraries that are here: our layer, the dense
// product, Eigen if it was found when this was built, and SciPy if python3 has it now. Each gets
// the same weights and operands; Eigen's rows are shared among as many threads as our layer has,
// SciPy has one thread. GradW at the pattern of R is a product that only our layer and dense
// products have. `check` compares all results with double precision.
PeerRun run_peers(const Arguments& arguments, bool check, Progress& progress);

// Returns one line for each pass, a line with the outcome (PASS, FAIL or UNCHECKED), and the
// verdict on our layer and the dense product.
std::string to_text(const PeerRun& run);

// Returns a line of JSON for each pass and library.
std::string to_json_lines(const PeerRun& run);

}  // namespace tessera::tools
