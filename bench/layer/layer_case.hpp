#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/planner/plan.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// One pass of one layer: outputs x inputs, batch, blocks, stored type.
struct LayerCase {
  std::int64_t x = 4096, y = 4096, z = 256;
  std::int64_t block = 1;          // rows of a block
  std::int64_t block_columns = 0;  // 0: as many as rows
  double density = 0.1;
  Pass pass = Pass::Fwd;
  std::string type = "float";
  int threads = 1;
  host::DenseChoice dense = host::DenseChoice::Never;
  host::HostCpu cpu = host::read_host_cpu();  // whose caches the layer is cut for

  // "4096x4096 z256 block 1 density 0.1 Fwd float, 1 thread"
  std::string name() const;
  BlockShape shape() const { return {block, block_columns > 0 ? block_columns : block}; }
  Problem problem() const;  // of a layer for this pass
};

// Parses "out,in,z,block,density,pass,type,threads", for example
// "4096,4096,256,16,0.1,gradw,float,1". Throws std::invalid_argument with the reason.
LayerCase parse_case(const std::string& text);

// Reads "fwd", "grada" or "gradw". Throws std::invalid_argument for anything else.
Pass parse_pass(const std::string& text);

struct Measured {
  double least_seconds = 0;     // of all samples: what an idle neighbour leaves us
  double seconds = 0;           // median, from the caller's row-major operands to row-major results
  double kernel_share = 0;      // of the time of all threads, in kernels
  double copy_share = 0;        // of the time, bringing an operand into panels
  double forecast_seconds = 0;  // by the cost model, from rates measured in this process
  double flops = 0;             // useful: 2 * non-zeros * z
  double peak = 0;              // float fused multiply-add peak of one core, measured beside it
  double rate() const { return flops / seconds; }
  double of_peak() const { return rate() / peak; }
};

struct Seconds {
  double median = 0, least = 0;
};
// Returns the thread's CPU time (one thread) or the wall time (several threads) of `samples` runs,
// and of at least 0.3 s of runs, after a warm-up.
Seconds time_of(int threads, int samples, const std::function<void()>& run);

// Runs the case on our layer with weights of this pattern. The first and the last columns of the
// result are compared with double precision first; a wrong result throws std::runtime_error.
Measured measure(const LayerCase& c, const sparse::Csr<float>& weights);
Measured measure(const LayerCase& c);  // a uniform pattern

}  // namespace tessera::bench
