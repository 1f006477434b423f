#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/tools/layer_arguments.hpp"

namespace tessera::tools {

// The time of a layer on this computer. The time of each pass is the median of several runs.
struct MeasuredLayer {
  struct OnePass {
    Pass pass = Pass::Fwd;
    double seconds = 0;
    double spread = 0;  // half the range of the middle half of the runs, in seconds
  };

  std::string kernel;  // of a dense layer: "oneDNN, float"
  std::vector<OnePass> passes;

  // Returns the time of all passes, in seconds.
  double seconds() const;

  // Returns the sum of the spreads of the passes, divided by seconds().
  double spread() const;
};

// Measures layers of one size and type, with random operands. One thread may use it at a time. A
// pass is repeated until its spread is below `spread`, for at most a third of a second. After
// Ctrl-C every pass is run only once more.
class HostStudy {
 public:
  // `threads` is the number of threads; 0: one for each core.
  explicit HostStudy(const LayerArguments& layer, int threads = 0, double spread = 0.03);
  HostStudy(HostStudy&&) noexcept;
  ~HostStudy();

  // Measures a random pattern of blocks.
  MeasuredLayer random(BlockShape block, double density);

  // Measures a pattern of elements, whose values are all 1, in blocks.
  MeasuredLayer pattern(const sparse::Csr<double>& ones, BlockShape block);

  // Measures the dense products of this computer, that of the library, if the build has one, and
  // our own, and returns the fastest. Where float is faster than the type of the layer, it is that
  // of float, which a user would then run.
  MeasuredLayer fastest_dense();

 private:
  class Runs;
  template <class T>
  class TypedRuns;

  LayerArguments layer_;
  int threads_;
  double spread_;
  std::unique_ptr<Runs> runs_;
};

}  // namespace tessera::tools
