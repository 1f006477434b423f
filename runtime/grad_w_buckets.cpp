#include <vector>

#include "tessera/runtime/internal/grad_w_pass.hpp"
#include "tessera/runtime/internal/travelling_buckets.hpp"

namespace tessera::runtime::internal {
namespace {

// GradW with travelling buckets: operands stay, and each tile adds the products of its own operands
// to the sums of the bucket that it holds at the time.
class GradWBuckets final : public GradWPass {
 public:
  GradWBuckets(const PassSpec& pass, TileProgram& of_pass, const PassHomes& homes_of_network)
      : GradWPass(pass, GradWExchange::Buckets, of_pass, homes_of_network),
        travelling_(map, shape, loop) {}

  void declare_buffers() override {
    for (const TileId tile : all) homes_.push_back({slots_of(tile).meta, slots_of(tile).sums});
    travelling_.declare_buffers(program);
  }

  void declare_work() override {
    program.compute(Phase::Distribute, {{homes.use.words, use.q, use.s}, {use.sums}}, all,
                    [this](const device::Tile& tile) {
                      const Cycles cleared = clear_sums(tile);
                      return cleared + visit_here(tile, homes_[std::size_t(tile.id().value)]);
                    });
    if (!loop.possible()) return;
    loop.declare_loops(program, [this] { declare_turn(); });
    program.when(
        "buckets have left home", [this] { return loop.began(); }, [this] { declare_way_home(); });
  }

 private:
  void declare_turn() {
    travelling_.declare_move(program, homes_, {homes.use.words, use.sums});
    Uses uses{{use.q, use.s}, {}};
    travelling_.add_words_and_payloads(uses.reads);
    travelling_.add_payloads(uses.writes);
    loop.declare_visit(program, uses, all, [this](const device::Tile& tile) {
      return visit_here(tile, travelling_.current(tile.id()));
    });
  }

  void declare_way_home() {
    // The distance is known from the step of control that ended the loops, so no other is needed.
    program.repeat(
        "buckets are away from displacement 0", [this] { return loop.next_home(); },
        [this] { travelling_.declare_shifts(program); });
    travelling_.declare_return(program, homes_, use.sums);
  }

  Cycles visit_here(const device::Tile& tile, BucketSlots bucket) const {
    const TileSlots& own = slots_of(tile.id());
    return visit(tile, {bucket.meta, bucket.payload, own.q, own.s, map.cell(tile.id())});
  }

  std::vector<BucketSlots> homes_;
  TravellingBuckets travelling_;
};

}  // namespace

std::unique_ptr<GradWPass> make_grad_w_buckets(const PassSpec& spec, TileProgram& program,
                                               const PassHomes& shared) {
  return std::make_unique<GradWBuckets>(spec, program, shared);
}

}  // namespace tessera::runtime::internal
