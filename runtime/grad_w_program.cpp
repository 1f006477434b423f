#include "tessera/runtime/internal/grad_w_pass.hpp"
#include "tessera/runtime/internal/spread.hpp"

namespace tessera::runtime::internal {

void GradWPass::declare_common_buffers() {
  homes = shared.buckets;
  if (shared.is_host) add_other_words(program, spec, all);
  q_in.come_from(shared.q);
  s_in.come_from(shared.s);
  use.q = q_in.add_buffer("output gradient");
  use.s = s_in.add_buffer("input");
  q_in.add_home_buffer("output gradient share");
  s_in.add_home_buffer("input share");
  if (shared.is_host) homes.use.words = program.add_buffer("bucket words", /*resident=*/true);
  use.words_here = cells_move() ? program.add_buffer("bucket words here") : homes.use.words;
  use.sums = program.add_buffer("gradient sums");
  use.result = casts() ? program.add_buffer("gradients") : use.sums;
  if (!rearranges()) return;
  use.q_blocks = program.add_buffer("rearranged output gradient");
  use.s_blocks = program.add_buffer("rearranged input");
}

void GradWPass::declare_load() {
  Uses loaded{{}, {homes.use.words}};
  q_in.add_loaded(loaded);
  s_in.add_loaded(loaded);
  if (loop.possible()) loaded.writes.push_back(loop.words());
  program.step(NodeKind::Load, {}, loaded, [this] { load(); });
}

void GradWPass::declare_prearrange() {
  q_in.bring(fetches, Cleared::All);
  s_in.bring(fetches, Cleared::All);
  fetches.declare_clear();
  Uses moved;
  fetches.add_uses(moved);
  if (cells_move()) moved.add({{homes.use.words}, {use.words_here}});
  program.exchange(Phase::PreArrange, moved, prearrange_gathers(), fetches.moves());
  if (!rearranges()) return;
  // Later steps read the operands in place, not the rearranged ones, as our kernels do.
  program.compute(Phase::Rearrange, {{use.q, use.s}, {use.q_blocks, use.s_blocks}}, all,
                  [this](const device::Tile& tile) { return rearrange(tile); });
}

// Every tile arranges its runs of both operands, which are read in place.
void GradWPass::declare_arranging() {
  program.charge(Phase::Arrange, {{q_in.home().buffer, s_in.home().buffer}, {}}, all,
                 arrange_cycles(spec, spec.grid.size.x, engine.machine()) +
                     arrange_cycles(spec, spec.grid.size.y, engine.machine()));
}

void GradWPass::declare() {
  declare_common_buffers();
  add_tiles();
  loop.declare(program);
  declare_buffers();
  if (shared.is_host) declare_load();
  if (spread()) declare_arranging();
  declare_prearrange();
  declare_work();
  if (casts())
    program.compute(Phase::Cast, {{use.sums}, {use.result}}, all,
                    [this](const device::Tile& tile) { return cast(tile); });
  if (shared.is_host)
    program.step(NodeKind::Collect, {}, {{use.result}, {}}, [this] { collect(); });
}

}  // namespace tessera::runtime::internal
