#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/tools/ranks/rank_weights.hpp"
#include "tessera/tools/run/host_run.hpp"

namespace tessera::tools::internal {

// A layer that is spread over ranks, measured by the slowest of them. A rank checks its own
// results, so no rank needs the weights of others.
class RankTarget final : public MeasuredTarget {
 public:
  RankTarget(distributed::RankLayer& layer, distributed::Communicator& ranks,
             const RankWeights& weights, HostRun& run)
      : MeasuredTarget(layer, weights.layer, run),
        layer_(layer),
        ranks_(ranks),
        rank_weights_(weights) {}

  // Runs a pass as often as the slowest rank's first run allows in a tenth of a second, and once
  // more to check it.
  bool run(Pass pass, const layer::Operands& operands, const layer::PassOptions& options,
           const FaultOfRun& fault) override;

  std::vector<GroupShare> shares() const override;
  sparse::CheckedCsr<float> matrix(Pass pass, const GroupShare& share) const override;
  verify::Verdict of_all(const verify::Verdict& own) override;
  bool has_all() const override { return false; }
  void collect(Range GroupShare::* rows, layer::ConstView own, layer::View all) override;
  std::vector<sparse::Csr<float>> collect(std::vector<sparse::Csr<float>> gradients) override;

 private:
  // Returns the gradients of a group of all ranks, on the first one. `own` has those of this rank's
  // part at their places.
  sparse::Csr<float> whole(const sparse::Coo<float>& own);

  distributed::RankLayer& layer_;
  distributed::Communicator& ranks_;
  const RankWeights& rank_weights_;
};

}  // namespace tessera::tools::internal
