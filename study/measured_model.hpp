#pragma once

#include <memory>
#include <optional>

#include "tessera/study/cost_model.hpp"
#include "tessera/study/timing.hpp"

namespace tessera::study {

// Seconds of runs on this computer, with random operands. The time of a pass is the median of
// several runs, which are repeated until their spread is below `spread`, for at most a third of a
// second.
class MeasuredModel : public CostModel {
 public:
  // `threads` is the number of threads; 0: one for each core. After `is_stopped` every pass is run
  // only once more.
  MeasuredModel(const Problem& layer, int threads, double spread, Stop is_stopped);
  ~MeasuredModel() override;

  Origin origin() const override { return Origin::Measured; }
  Cost sparse(const Form& form) override;

  // Measures the dense products of this computer, that of the library, if the build has one, and
  // our own, once, and returns the fastest. Where float is faster than the type of the layer, it is
  // that of float, which a user would then run. The batch is that of the layer.
  Cost dense(std::int64_t batch = 0) override;

 private:
  class Runs;
  template <class T>
  class TypedRuns;

  int threads_;
  double spread_;
  Stop is_stopped_;
  std::unique_ptr<Runs> runs_;
  std::optional<Cost> dense_;
};

}  // namespace tessera::study
