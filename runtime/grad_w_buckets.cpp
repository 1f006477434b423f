#include <vector>

#include "tessera/runtime/internal/grad_w_base.hpp"
#include "tessera/runtime/internal/travelling_buckets.hpp"

namespace tessera::runtime::internal {
namespace {

// GradW by moving buckets: operands stay, each tile adds what its own (x, y, z) gives to whichever
// bucket is there.
class GradWBuckets final : public GradWPass::Base {
 public:
  GradWBuckets(const PassSpec& pass, const device::Machine& machine, device::ExchangeMode mode,
               Executor& executor)
      : Base(pass, TileOrder::Yzx, machine, mode, executor),
        travelling_(engine, map, shape, {kPropagate, kPropagate}) {
    for (const TileId tile : all) homes_.push_back({slots_of(tile).meta, slots_of(tile).sums});
    seal();
    travelling_.prepare(engine);
  }

  void work(const partitioner::Travel& travel) override {
    engine.begin_phase(kDistribute);
    engine.compute("distribute", all, [&](const device::Tile& tile) {
      const Cycles cleared = clear_sums(tile);
      return cleared + visit_here(tile, homes_[std::size_t(tile.id().value)]);
    });
    engine.begin_phase(kPropagate);
    propagate(travel);
  }

 private:
  Cycles visit_here(const device::Tile& tile, BucketSlots bucket) const {
    const TileSlots& own = slots_of(tile.id());
    return visit(tile, {bucket.meta, bucket.payload, own.q, own.s, map.cell(tile.id())});
  }

  void propagate(const partitioner::Travel& travel) {
    constexpr const char* kName = "propagate";
    const auto steps = propagation_steps(travel, spec.grid.splits, Served::OwnZ);
    if (steps.empty()) return;
    travelling_.run(engine, kName, homes_, steps, [&] {
      engine.compute(kName, all, [&](const device::Tile& tile) {
        return visit_here(tile, travelling_.current(tile.id()));
      });
    });
    for (const PropagationStep& step : return_home(steps.back().after, spec.grid.splits))
      travelling_.shift(engine, kName, step.shift);
    travelling_.bring_home(engine, kName, homes_);
  }

  std::vector<BucketSlots> homes_;
  TravellingBuckets travelling_;
};

}  // namespace

std::unique_ptr<GradWPass::Base> make_grad_w_buckets(const PassSpec& spec,
                                                     const device::Machine& machine,
                                                     device::ExchangeMode mode,
                                                     Executor& executor) {
  return std::make_unique<GradWBuckets>(spec, machine, mode, executor);
}

}  // namespace tessera::runtime::internal
