#include "tessera/runtime/internal/grad_w_pass.hpp"
#include "tessera/runtime/internal/spread.hpp"

namespace tessera::runtime::internal {

void GradWPass::declare_common_buffers() {
  if (shared == nullptr) add_other_words(program, spec, all);
  const bool moves = cells_move();
  use.q = program.add_buffer("output gradient");
  use.s = program.add_buffer("input");
  if (q_is_fetched()) use.q_home = program.add_buffer("output gradient share");
  if (s_is_fetched()) use.s_home = program.add_buffer("input share");
  use.words = shared != nullptr ? shared->bucket_buffers.words
                                : program.add_buffer("bucket words", /*resident=*/true);
  use.words_here = moves ? program.add_buffer("bucket words here") : use.words;
  use.sums = program.add_buffer("gradient sums");
  use.result = casts() ? program.add_buffer("gradients") : use.sums;
  if (!rearranges()) return;
  use.q_blocks = program.add_buffer("rearranged output gradient");
  use.s_blocks = program.add_buffer("rearranged input");
}

// If tiles work on their own cells and an operand's slices are not shared, it is loaded into its
// final slots at once.
void GradWPass::declare_load() {
  const Dims& splits = spec.grid.splits;
  Uses loaded{{}, {use.words}};
  if (splits.y == 1 && !spread()) loaded.writes.push_back(use.q);
  if (q_is_fetched()) loaded.writes.push_back(use.q_home);
  if (splits.x == 1 && !spread()) loaded.writes.push_back(use.s);
  if (s_is_fetched()) loaded.writes.push_back(use.s_home);
  if (loop.possible()) loaded.writes.push_back(loop.words());
  program.step(NodeKind::Load, {}, loaded, [this] { load(); });
}

// In a network the operands come from the tiles that hold them, wherever they are.
void GradWPass::declare_fetches() {
  const auto homes = [this](const TensorHome& from) {
    return homes_of(spec.grid, from.rows, from.cols);
  };
  q_slices = slices_home(homes(*shared->q).slices_dq(map.order()), use.q,
                         [this](TileId tile) { return slots_of(tile).q; });
  s_slices = slices_home(homes(*shared->s).slices_s(map.order()), use.s,
                         [this](TileId tile) { return slots_of(tile).s; });
  fetches.emplace(program, spec.data_type());
  fetches->add(*shared->q, q_slices, Cleared::All);
  fetches->add(*shared->s, s_slices, Cleared::All);
  fetches->declare_clear();
}

void GradWPass::declare_prearrange() {
  const bool moves = cells_move();
  Uses moved;
  if (shared != nullptr) declare_fetches();
  if (fetches) fetches->add_uses(moved);
  const auto add = [&](BufferId from, BufferId to) { moved.add({{from}, {to}}); };
  if (q_is_fetched()) add(use.q_home, use.q);
  if (s_is_fetched()) add(use.s_home, use.s);
  if (moves) add(use.words, use.words_here);
  program.exchange(Phase::PreArrange, moved, prearrange_gathers(),
                   fetches ? fetches->moves() : std::vector<device::Move>());
  if (!rearranges()) return;
  // Later steps read the operands in place, not the rearranged ones, as our kernels do.
  program.compute(Phase::Rearrange, {{use.q, use.s}, {use.q_blocks, use.s_blocks}}, all,
                  [this](const device::Tile& tile) { return rearrange(tile); });
}

// Every tile arranges its runs of both operands, which are read in place.
void GradWPass::declare_arranging() {
  program.charge(Phase::Arrange, {{use.q_home, use.s_home}, {}}, all,
                 arrange_cycles(spec, spec.grid.size.x, engine.machine()) +
                     arrange_cycles(spec, spec.grid.size.y, engine.machine()));
}

void GradWPass::declare() {
  declare_common_buffers();
  add_tiles();
  loop.declare(program);
  declare_buffers();
  if (shared == nullptr) declare_load();
  if (spread()) declare_arranging();
  declare_prearrange();
  declare_work();
  if (casts())
    program.compute(Phase::Cast, {{use.sums}, {use.result}}, all,
                    [this](const device::Tile& tile) { return cast(tile); });
  if (shared == nullptr)
    program.step(NodeKind::Collect, {}, {{use.result}, {}}, [this] { collect(); });
}

}  // namespace tessera::runtime::internal
