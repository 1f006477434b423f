#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/runtime/internal/spmm_pass.hpp"
#include "tessera/runtime/internal/spread.hpp"

namespace tessera::runtime::internal {

void SpmmPass::declare_buffers() {
  homes = shared.is_host ? add_home_buckets(program, spec, map) : shared.buckets;
  in.come_from(shared.in);
  use.in = in.add_buffer("operand");
  in.add_home_buffer("operand share");
  use.partial = program.add_buffer("partial sums");
  if (spec.grid.splits.z > 1)
    use.arrived = {program.add_buffer("words of the cell"),
                   program.add_buffer("values of the cell")};
  if (turns_blocks()) use.turned = program.add_buffer("transposed values");
  add_slots();
  travelling.declare_buffers(program);
  loop.declare(program);
}

// Returns the buffers of a tile's own bucket that a visit reads. If blocks are transposed, these
// are the transposed values, and those at home as well, because our kernels read them there.
std::vector<BufferId> SpmmPass::visited_buckets() const {
  std::vector<BufferId> ids{homes.use.words, homes.use.payload};
  if (turns_blocks()) ids.push_back(use.turned);
  return ids;
}

void SpmmPass::declare_propagation() {
  if (!loop.possible()) return;
  loop.declare_loops(program, [&] {
    travelling.declare_move(program, homes.slots, visited_buckets());
    Uses uses{{use.in}, {use.partial}};
    travelling.add_words_and_payloads(uses.reads);
    loop.declare_visit(program, uses, all,
                       [this](const device::Tile& tile) { return visit_arrived(tile); });
  });
}

void SpmmPass::declare_load() {
  Uses loaded{{}, {homes.use.words, homes.use.payload}};
  in.add_loaded(loaded);
  if (loop.possible()) loaded.writes.push_back(loop.words());
  program.step(NodeKind::Load, {}, loaded, [this] { load(); });
}

// Adds the step in which every tile arranges its run of [groups * rows][z] elements: no data move,
// because the caller's memory is read in place.
void SpmmPass::declare_arranging(BufferId buffer, std::int64_t rows) {
  program.charge(Phase::Arrange, {{buffer}, {}}, all, arrange_cycles(spec, rows, engine.machine()));
}

// Each tile transposes the blocks of its own bucket before the buckets travel. Our kernels read the
// blocks in place.
void SpmmPass::declare_transposing() {
  program.charge(Phase::Transpose, {{homes.use.payload}, {use.turned}}, all,
                 codelets::transpose_blocks_cycles(spec.grid.blocks, spec.grid.block,
                                                   spec.data_type(), engine.machine().workers));
}

// Brings the slices of the operand, and the other buckets of a cell, to the tiles.
void SpmmPass::declare_prearranging() {
  Uses moved;
  fetches.add_uses(moved);
  if (spec.grid.splits.z > 1)
    moved.add({visited_buckets(), {use.arrived.words, use.arrived.payload}});
  std::vector<device::Gather> gathers = fetches.take_gathers();
  if (spec.grid.splits.z > 1)
    for (const TileId tile : all) add_bucket_gathers(tile, gathers);
  program.exchange(Phase::PreArrange, moved, std::move(gathers), fetches.moves(),
                   sums ? Exchanged::CostAlone : Exchanged::Data);
}

void SpmmPass::declare_multiplying() {
  Uses multiplied{{use.in}, {use.partial}};
  multiplied.add({visited_buckets(), {}});
  if (spec.grid.splits.z > 1) multiplied.add({{use.arrived.words, use.arrived.payload}, {}});
  program.step(
      NodeKind::Compute, Phase::Distribute, multiplied,
      [this] {
        if (sums) sums->count_cycles(engine.machine());
        engine.compute(Phase::Distribute, all,
                       [this](const device::Tile& tile) { return distribute(tile); });
      },
      map.tiles());
}

// The result of the host has the padded size.
void SpmmPass::declare_collect() {
  const Dims& padded = spec.grid.size;
  const planner::Homes cut(padded, spec.parts(), padded, spec.grid.block);
  result = tensor_home(role.forward ? cut.result_q() : cut.result_ds());
  reduction.give_slots(result);
  program.step(NodeKind::Collect, {}, {{result.buffer}, {}}, [this] { collect(); });
}

void SpmmPass::declare() {
  declare_buffers();
  if (shared.is_host) declare_load();
  in.bring(fetches, shared.cleared);
  fetches.add(shared.beside);
  fetches.declare_clear();
  if (in_is_spread()) declare_arranging(in.home().buffer, role.all_in_rows(spec.grid.size));
  if (turns_blocks()) declare_transposing();
  declare_prearranging();
  declare_multiplying();
  declare_propagation();
  reduction.declare(program, use.partial, columns());
  if (out_is_spread())
    declare_arranging(reduction.result(), role.forward ? spec.grid.size.x : spec.grid.size.y);
  if (shared.is_host) declare_collect();
}

}  // namespace tessera::runtime::internal
