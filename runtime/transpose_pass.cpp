#include "tessera/runtime/internal/transpose_pass.hpp"

#include <cstring>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/codelets/cost/dense_cycles.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

using device::ByteRows;
using device::SlotId;
using device::SlotKind;

namespace {

constexpr Phase kTransposePhase = Phase::TransposeOperand;

// A tile and its part of the operand of a group.
struct TransposedPart {
  TileId tile;
  std::int64_t group = 0;
  Range rows, cols;
  SlotId home, arrived, turned;
};

}  // namespace

struct TransposePass::State {
  State(const planner::TransposePlan& made, Bytes resident, const device::Machine& machine,
        device::ExchangeMode mode, Executor& executor);

  std::int64_t element() const { return bytes_of(plan.data_type); }
  void add_parts(Bytes resident);
  void declare();
  void load();
  Cycles transpose(const device::Tile& tile) const;
  void collect() const;

  planner::TransposePlan plan;
  TileProgram program;
  device::Engine& engine = program.engine();
  std::vector<TransposedPart> parts;  // by tile
  std::vector<TileId> tiles;
  BufferId buckets, home, arrived, turned;
  ByteRows from, to;
};

TransposePass::State::State(const planner::TransposePlan& made, Bytes resident,
                            const device::Machine& machine, device::ExchangeMode mode,
                            Executor& executor)
    : plan(made), program("transpose operand", machine, mode, executor) {
  buckets = program.add_buffer("buckets of the layer", /*resident=*/true);
  home = program.add_buffer("operand share", /*resident=*/true);
  arrived = program.add_buffer("part of the operand");
  turned = program.add_buffer("transposed part");
  add_parts(resident);
  declare();
  program.seal();
}

void TransposePass::State::add_parts(Bytes resident) {
  for (std::int64_t g = 0; g < plan.groups; ++g)
    for (std::int64_t i = 0; i < plan.row_parts; ++i)
      for (std::int64_t j = 0; j < plan.col_parts; ++j) {
        const Range rows = plan.rows_of(i), cols = plan.cols_of(j);
        if (rows.size() == 0 || cols.size() == 0) continue;
        const TileId tile = tiles.emplace_back(std::ssize(tiles));
        program.add_slot(buckets, tile, 1, resident.value);
        parts.push_back(
            {.tile = tile,
             .group = g,
             .rows = rows,
             .cols = cols,
             .home = program.add_slot(home, tile, rows.size(), cols.size() * element()),
             .arrived = program.add_slot(arrived, tile, rows.size(), cols.size() * element()),
             .turned = program.add_slot(turned, tile, cols.size(), rows.size() * element(),
                                        SlotKind::Owned)});
      }
}

void TransposePass::State::declare() {
  program.step(NodeKind::Load, {}, {{}, {buckets, home}}, [this] { load(); });
  program.compute(kTransposePhase, {{home}, {}}, tiles,
                  [this](const device::Tile&) { return plan.arrange; });
  std::vector<device::Gather> gathers;
  for (const TransposedPart& part : parts)
    gathers.push_back({{{part.home, {0, part.rows.size()}}}, {part.arrived}, plan.senders});
  program.exchange(kTransposePhase, {{home}, {arrived}}, std::move(gathers));
  program.compute(kTransposePhase, {{arrived}, {turned}}, tiles,
                  [this](const device::Tile& tile) { return transpose(tile); });
  program.step(NodeKind::Collect, {}, {{turned}, {}}, [this] { collect(); });
}

void TransposePass::State::load() {
  for (const TransposedPart& part : parts) {
    const std::int64_t first = part.group * plan.rows;
    ByteRows share = from.sub({first + part.rows.begin, first + part.rows.end});
    share.data += part.cols.begin * element();
    share.row_bytes = part.cols.size() * element();
    engine.load(part.home, share);
  }
}

Cycles TransposePass::State::transpose(const device::Tile& tile) const {
  const TransposedPart& part = parts[std::size_t(tile.id().value)];
  const ByteRows in = tile.view(part.arrived), out = tile.view(part.turned);
  with_type(plan.data_type, [&]<class T>(T) {
    constexpr auto kSize = std::int64_t{sizeof(T)};
    codelets::transpose(reinterpret_cast<const T*>(in.data), in.stride / kSize, in.rows,
                        part.cols.size(), reinterpret_cast<T*>(out.data), out.stride / kSize);
  });
  return codelets::dense_reorder_cycles(
      {.data_type = plan.data_type, .workers = engine.machine().workers}, part.rows.size(),
      part.cols.size(), /*transposed=*/true);
}

void TransposePass::State::collect() const {
  for (const TransposedPart& part : parts) {
    const ByteRows turned_part = engine.view(part.turned);
    for (std::int64_t c = 0; c < part.cols.size(); ++c)
      std::memcpy(to.data + (part.group * plan.cols + part.cols.begin + c) * to.stride +
                      part.rows.begin * element(),
                  turned_part.data + c * turned_part.stride, std::size_t(turned_part.row_bytes));
  }
}

TransposePass::TransposePass(const planner::TransposePlan& plan, Bytes resident,
                             const device::Machine& machine, device::ExchangeMode mode,
                             Executor& executor)
    : state_(std::make_unique<State>(plan, resident, machine, mode, executor)) {}
TransposePass::~TransposePass() = default;
TransposePass::TransposePass(TransposePass&&) noexcept = default;

bool TransposePass::run(ByteRows from, ByteRows to, const PassOptions& options,
                        device::Ledger& ledger) {
  state_->from = from;
  state_->to = to;
  return state_->program.run(options, ledger);
}

const device::Damage& TransposePass::damage() const { return state_->program.damage(); }
const Program& TransposePass::program() const { return state_->program.program(); }
Bytes TransposePass::high_water() const { return state_->engine.high_water(); }

}  // namespace tessera::runtime::internal
