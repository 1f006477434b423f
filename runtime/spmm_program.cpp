#include "tessera/runtime/internal/spmm_state.hpp"

namespace tessera::runtime {

void SpmmPass::State::declare_buffers() {
  if (shared != nullptr) {
    use.home = shared->bucket_buffers;
    use.in = bound.add_buffer("operand");
  } else {
    use.home = {bound.add_buffer("bucket words", /*resident=*/true),
                bound.add_buffer("bucket values", /*resident=*/true)};
    use.in = bound.add_buffer("operand");
    if (!in_is_here()) use.in_home = bound.add_buffer("operand share");
  }
  use.partial = bound.add_buffer("partial sums");
  if (spec.grid.splits.z > 1)
    use.arrived = {bound.add_buffer("words of the cell"), bound.add_buffer("values of the cell")};
  if (turns_blocks()) use.turned = bound.add_buffer("transposed values");
  travelling.declare_buffers(bound);
  loop.declare(bound);
}

// Returns the buffers of a tile's own bucket that a visit reads. If blocks are transposed, these
// are the transposed values, and those at home as well, because our kernels read them there.
std::vector<BufferId> SpmmPass::State::visited_buckets() const {
  std::vector<BufferId> ids{use.home.words, use.home.payload};
  if (turns_blocks()) ids.push_back(use.turned);
  return ids;
}

void SpmmPass::State::declare_propagation() {
  if (!loop.possible()) return;
  loop.declare_loops(bound, engine, [&] {
    travelling.declare_move(bound, engine, visited_buckets());
    internal::Uses uses{{use.in}, {use.partial}};
    travelling.add_words_and_payloads(uses.reads);
    bound.when(
        "this displacement holds something", [this] { return loop.now().compute; },
        [&] {
          bound.step(
              NodeKind::Compute, Phase::Propagate, uses, [this] { visit_arrived(); }, map.tiles());
        });
  });
}

void SpmmPass::State::declare_load() {
  internal::Uses loaded{{},
                        {use.home.words, use.home.payload, in_is_here() ? use.in : use.in_home}};
  if (loop.possible()) loaded.writes.push_back(loop.words());
  bound.step(NodeKind::Load, {}, loaded, [this] { load(); });
}

// In a network the operand comes from the tiles that hold it, wherever they are.
void SpmmPass::State::declare_fetches() {
  slices = internal::slices_home(spec.grid, map, !role.forward, shared->in->rows, shared->in->cols);
  slices.buffer = use.in;
  fetches.emplace(bound, engine, spec.data_type());
  fetches->add(*shared->in, slices, shared->cleared);
  if (shared->also_from != nullptr)
    fetches->add(*shared->also_from, *shared->also_to, internal::Cleared::All);
  fetches->declare_clear();
}

void SpmmPass::State::declare() {
  declare_buffers();
  if (shared == nullptr) declare_load();
  if (shared != nullptr) declare_fetches();
  const bool shares = !in_is_here() && shared == nullptr, copies = spec.grid.splits.z > 1;
  if (in_is_spread())
    bound.step(
        NodeKind::Compute, Phase::Arrange, {{use.in_home}, {}},
        [this] { arrange(role.all_in_rows(spec.grid.size)); }, map.tiles());
  if (turns_blocks())
    bound.step(
        NodeKind::Compute, Phase::Transpose, {{use.home.payload}, {use.turned}},
        [this] { transpose(); }, map.tiles());

  internal::Uses moved;
  if (shares) moved = {{use.in_home}, {use.in}};
  if (fetches) fetches->add_uses(moved);
  if (copies) {
    const auto buckets = visited_buckets();
    moved.reads.insert(moved.reads.end(), buckets.begin(), buckets.end());
    moved.writes.insert(moved.writes.end(), {use.arrived.words, use.arrived.payload});
  }
  prearrange_node = bound.step(NodeKind::Exchange, Phase::PreArrange, moved,
                               [this] { engine.exchange(Phase::PreArrange, prearrange); });

  internal::Uses multiplied{{use.in}, {use.partial}};
  const auto buckets = visited_buckets();
  multiplied.reads.insert(multiplied.reads.end(), buckets.begin(), buckets.end());
  if (copies)
    multiplied.reads.insert(multiplied.reads.end(), {use.arrived.words, use.arrived.payload});
  bound.step(
      NodeKind::Compute, Phase::Distribute, multiplied, [this] { distribute(); }, map.tiles());
  declare_propagation();
  reduction.declare(bound, engine, use.partial);
  if (out_is_spread())
    bound.step(
        NodeKind::Compute, Phase::Arrange, {{reduction.result()}, {}},
        [this] { arrange(role.forward ? spec.grid.size.x : spec.grid.size.y); }, map.tiles());
  if (shared == nullptr)
    bound.step(NodeKind::Collect, {}, {{reduction.result()}, {}}, [this] { collect(); });
}

}  // namespace tessera::runtime
