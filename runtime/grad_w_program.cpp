#include "tessera/runtime/internal/grad_w_base.hpp"

namespace tessera::runtime {

void GradWPass::Base::declare_common_buffers() {
  const bool moves = cells_move();
  use.q = bound.add_buffer("output gradient");
  use.s = bound.add_buffer("input");
  if (q_is_fetched()) use.q_home = bound.add_buffer("output gradient share");
  if (s_is_fetched()) use.s_home = bound.add_buffer("input share");
  use.words = shared != nullptr ? shared->bucket_buffers.words
                                : bound.add_buffer("bucket words", /*resident=*/true);
  use.words_here = moves ? bound.add_buffer("bucket words here") : use.words;
  use.sums = bound.add_buffer("gradient sums");
  use.result = casts() ? bound.add_buffer("gradients") : use.sums;
  if (!rearranges()) return;
  use.q_blocks = bound.add_buffer("rearranged output gradient");
  use.s_blocks = bound.add_buffer("rearranged input");
}

// If tiles work on their own cells and an operand's slices are not shared, it is loaded into its
// final slots at once.
void GradWPass::Base::declare_load() {
  const Dims& splits = spec.grid.splits;
  internal::Uses loaded{{}, {use.words}};
  if (splits.y == 1 && !spread()) loaded.writes.push_back(use.q);
  if (q_is_fetched()) loaded.writes.push_back(use.q_home);
  if (splits.x == 1 && !spread()) loaded.writes.push_back(use.s);
  if (s_is_fetched()) loaded.writes.push_back(use.s_home);
  if (loop.possible()) loaded.writes.push_back(loop.words());
  bound.step(NodeKind::Load, {}, loaded, [this] { load(); });
}

// In a network the operands come from the tiles that hold them, wherever they are.
void GradWPass::Base::declare_fetches() {
  q_slices = internal::slices_home(spec.grid, map, true, shared->q->rows, shared->q->cols);
  s_slices = internal::slices_home(spec.grid, map, false, shared->s->rows, shared->s->cols);
  q_slices.buffer = use.q;
  s_slices.buffer = use.s;
  fetches.emplace(bound, engine, spec.data_type());
  fetches->add(*shared->q, q_slices, internal::Cleared::All);
  fetches->add(*shared->s, s_slices, internal::Cleared::All);
  fetches->declare_clear();
}

void GradWPass::Base::declare_prearrange() {
  const bool moves = cells_move();
  internal::Uses moved;
  if (shared != nullptr) declare_fetches();
  if (fetches) fetches->add_uses(moved);
  const auto add = [&](BufferId from, BufferId to) {
    moved.reads.push_back(from);
    moved.writes.push_back(to);
  };
  if (q_is_fetched()) add(use.q_home, use.q);
  if (s_is_fetched()) add(use.s_home, use.s);
  if (moves) add(use.words, use.words_here);
  prearrange_node_ = bound.step(NodeKind::Exchange, Phase::PreArrange, moved,
                                [this] { engine.exchange(Phase::PreArrange, prearrange); });
  if (!rearranges()) return;
  // Later steps read the operands in place, not the rearranged ones, as our kernels do.
  compute(Phase::Rearrange, {{use.q, use.s}, {use.q_blocks, use.s_blocks}},
          [this] { rearrange(); });
}

void GradWPass::Base::declare() {
  declare_common_buffers();
  loop.declare(bound);
  declare_buffers();
  if (shared == nullptr) declare_load();
  if (spread()) compute(Phase::Arrange, {{use.q_home, use.s_home}, {}}, [this] { arrange(); });
  declare_prearrange();
  declare_work();
  if (casts()) compute(Phase::Cast, {{use.sums}, {use.result}}, [this] { cast(); });
  if (shared == nullptr)
    bound.step(NodeKind::Collect, {}, {{use.result}, {}}, [this] { collect(); });
}

}  // namespace tessera::runtime
