#include "tessera/runtime/internal/transpose_pass.hpp"

#include <cstring>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/codelets/cost/dense_cycles.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/runtime/internal/bound_program.hpp"

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
  void add_parts();
  void declare();
  void add_slots(Bytes resident);
  void prepare();
  void load();
  Cycles transpose(const device::Tile& tile) const;
  void collect() const;

  planner::TransposePlan plan;
  BoundProgram bound{"transpose operand"};
  device::Engine engine;
  std::vector<TransposedPart> parts;  // by tile
  std::vector<TileId> tiles;
  BufferId buckets, home, arrived, turned;
  int exchange_node = -1;
  device::Exchange exchange;
  ByteRows from, to;
};

TransposePass::State::State(const planner::TransposePlan& made, Bytes resident,
                            const device::Machine& machine, device::ExchangeMode mode,
                            Executor& executor)
    : plan(made), engine(machine, mode, executor) {
  add_parts();
  declare();
  bound.finish();
  add_slots(resident);
  bound.seal(engine);
  prepare();
}

void TransposePass::State::add_parts() {
  for (std::int64_t g = 0; g < plan.groups; ++g)
    for (std::int64_t i = 0; i < plan.row_parts; ++i)
      for (std::int64_t j = 0; j < plan.col_parts; ++j) {
        const Range rows = plan.rows_of(i), cols = plan.cols_of(j);
        if (rows.size() == 0 || cols.size() == 0) continue;
        tiles.emplace_back(std::ssize(tiles));
        parts.push_back({.tile = tiles.back(), .group = g, .rows = rows, .cols = cols});
      }
}

void TransposePass::State::declare() {
  buckets = bound.add_buffer("buckets of the layer", /*resident=*/true);
  home = bound.add_buffer("operand share", /*resident=*/true);
  arrived = bound.add_buffer("part of the operand");
  turned = bound.add_buffer("transposed part");
  bound.step(NodeKind::Load, {}, {{}, {buckets, home}}, [this] { load(); });
  bound.step(
      NodeKind::Compute, kTransposePhase, {{home}, {}},
      [this] {
        engine.compute(kTransposePhase, tiles,
                       [this](const device::Tile&) { return plan.arrange; });
      },
      std::ssize(tiles));
  exchange_node = bound.step(NodeKind::Exchange, kTransposePhase, {{home}, {arrived}},
                             [this] { engine.exchange(kTransposePhase, exchange); });
  bound.step(
      NodeKind::Compute, kTransposePhase, {{arrived}, {turned}},
      [this] {
        engine.compute(kTransposePhase, tiles,
                       [this](const device::Tile& tile) { return transpose(tile); });
      },
      std::ssize(tiles));
  bound.step(NodeKind::Collect, {}, {{turned}, {}}, [this] { collect(); });
}

void TransposePass::State::add_slots(Bytes resident) {
  for (TransposedPart& part : parts) {
    const std::int64_t rows = part.rows.size(), cols = part.cols.size();
    const auto add = [&](BufferId buffer, std::int64_t of_rows, std::int64_t bytes, SlotKind kind) {
      return engine.add_slot(bound.slot(buffer, part.tile, of_rows, bytes, kind));
    };
    add(buckets, 1, resident.value, SlotKind::Landing);
    part.home = add(home, rows, cols * element(), SlotKind::Landing);
    part.arrived = add(arrived, rows, cols * element(), SlotKind::Landing);
    part.turned = add(turned, cols, rows * element(), SlotKind::Owned);
  }
}

void TransposePass::State::prepare() {
  std::vector<device::Gather> gathers;
  for (const TransposedPart& part : parts)
    gathers.push_back({{{part.home, {0, part.rows.size()}}}, {part.arrived}, plan.senders});
  exchange = engine.prepare(std::move(gathers));
  bound.set_moves(exchange_node, exchange.moved);
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
  const bool finished = state_->bound.run(state_->engine, options);
  ledger = state_->engine.ledger();
  return finished;
}

const device::Damage& TransposePass::damage() const { return state_->bound.damage(); }
const Program& TransposePass::program() const { return state_->bound.program(); }
Bytes TransposePass::high_water() const { return state_->engine.high_water(); }

}  // namespace tessera::runtime::internal
