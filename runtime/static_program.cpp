#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/runtime/internal/static_pass.hpp"

namespace tessera::runtime::internal {

using device::Gather;
using device::SlotId;
using device::SlotKind;

namespace {

// An entry of the table by which GradA finds a block.
constexpr std::int64_t kPlaceBytes = sizeof(std::uint32_t);

// Returns the table by which GradA finds the blocks of a tile.
std::vector<std::byte> table_of(const StaticWork& work) {
  std::vector<std::byte> table(work.own->block.size() * kPlaceBytes);
  for (std::size_t i = 0; i < work.own->block.size(); ++i) {
    const auto entry = static_cast<std::uint32_t>(work.own->block[i]);
    std::memcpy(table.data() + i * kPlaceBytes, &entry, kPlaceBytes);
  }
  return table;
}

}  // namespace

std::vector<std::byte> StaticPass::words_of(const StaticWork& work) const {
  const codelets::StaticForm form = form_of(work);
  const StaticTileBlocks& own = *work.own;
  const std::int64_t count =
      codelets::static_word_count(form, std::ssize(own.rows), std::ssize(own.column));
  std::vector<std::byte> words(std::size_t(count * form.word_bytes()));
  codelets::write_static_words(form, {own.row_begin, own.column}, words.data());
  return words;
}

void StaticPass::declare_buffers() {
  in_.home = program_.add_buffer(is_gradient() ? "dQ share" : "operand share", /*resident=*/true);
  in_.here = program_.add_buffer(is_gradient() ? "rows of dQ" : "rows of the operand");
  if (is_gradient()) {
    in_s_.home = program_.add_buffer("S share", /*resident=*/true);
    in_s_.here = program_.add_buffer("rows of S");
  }
  use_.words = program_.add_buffer("static words", /*resident=*/true);
  use_.result = program_.add_buffer(is_gradient() ? "partial gradients" : "partial sums");
  if (is_gradient()) return;
  use_.value_home = program_.add_buffer("values", /*resident=*/true);
  use_.values = brings_values() ? program_.add_buffer("values of the tile") : use_.value_home;
  if (!turns()) return;
  use_.table = program_.add_buffer("places of transposed blocks", /*resident=*/true);
  use_.turned = program_.add_buffer("transposed values");
}

void StaticPass::declare() {
  if (cut_.works.empty()) {  // all results are zero
    program_.step(NodeKind::Collect, {}, {}, [this] { collect(); });
    return;
  }
  declare_buffers();
  add_slots();
  Uses loaded{{}, {in_.home, use_.words}}, fetched{{in_.home}, {in_.here}},
      multiplied{{in_.here, use_.words}, {use_.result}};
  if (is_gradient()) {
    loaded.writes.push_back(in_s_.home);
    fetched.add({{in_s_.home}, {in_s_.here}});
    multiplied.reads.push_back(in_s_.here);
  } else {
    loaded.writes.push_back(use_.value_home);
    multiplied.reads.push_back(turns() ? use_.turned : use_.values);
  }
  if (turns()) loaded.writes.push_back(use_.table);
  program_.step(NodeKind::Load, {}, loaded, [this] { load(); });
  declare_arranging(fetched.reads, in_.all_rows + in_s_.all_rows);
  std::vector<Gather> gathers;
  add_gathers(in_, false, gathers);
  if (is_gradient()) add_gathers(in_s_, true, gathers);
  program_.exchange(Phase::PreArrange, fetched, std::move(gathers));
  if (brings_values())
    program_.exchange(Phase::Distribute, {{use_.value_home}, {use_.values}}, value_gathers());
  if (turns())
    program_.compute(Phase::Transpose, {{use_.values, use_.table}, {use_.turned}}, busy_,
                     [this](const device::Tile& tile) { return turn(tile); });
  program_.compute(Phase::Distribute, multiplied, busy_,
                   [this](const device::Tile& tile) { return multiply(tile); });
  declare_result();
}

// Every tile arranges its run of this many rows of each group, which is charged alone.
void StaticPass::declare_arranging(std::vector<BufferId> reads, std::int64_t rows) {
  const StaticSizes& sizes = cut_.sizes;
  program_.charge(Phase::Arrange, {std::move(reads), {}}, all_,
                  codelets::arrange_cycles(rows * sizes.size.z * sizes.bytes(), sizes.tiles,
                                           engine_.machine().arrange_bytes_per_cycle));
}

void StaticPass::declare_result() {
  std::vector<SlotId> results;
  for (const Slots& slots : slots_) results.push_back(slots.result);
  sums_.declare(program_, use_.result, works(), results);
  if (!is_gradient())
    declare_arranging(sums_.results(), turns() ? cut_.sizes.size.y : cut_.sizes.size.x);
  program_.step(NodeKind::Collect, {}, {sums_.results(), {}}, [this] { collect(); });
}

void StaticPass::add_homes(OperandUse& operand) {
  for (const StaticBatchPart& part : cut_.parts) {
    std::vector<SlotId>& homes = operand.homes.emplace_back();
    for (std::int64_t i = 0; i < part.tiles.size(); ++i)
      homes.push_back(program_.add_slot(operand.home, TileId(part.tiles.begin + i),
                                        part.spread(operand.all_rows, i).size(),
                                        part.z.size() * cut_.sizes.bytes()));
  }
}

void StaticPass::add_slots() {
  add_homes(in_);
  if (is_gradient()) add_homes(in_s_);
  if (!is_gradient()) add_value_homes();
  slots_.resize(works().size());
  for (std::size_t w = 0; w < works().size(); ++w) add_work_slots(w);
}

void StaticPass::add_value_homes() {
  const std::int64_t bytes = cut_.sizes.bytes();
  value_homes_.resize(values_.works.size());
  for (std::size_t w = 0; w < values_.works.size(); ++w)
    if (values_.stored[w].size() > 0)
      value_homes_[w] = program_.add_slot(use_.value_home, values_.works[w].tile,
                                          values_.stored[w].size(), bytes);
}

void StaticPass::add_work_slots(std::size_t w) {
  const StaticWork& work = works()[w];
  const BlockShape block = cut_.sizes.block;
  const std::int64_t bytes = cut_.sizes.bytes(), row_bytes = work.z.size() * bytes;
  const auto add = [&](BufferId buffer, std::int64_t rows, std::int64_t bytes_of_row,
                       SlotKind kind) {
    return program_.add_slot(buffer, work.tile, rows, bytes_of_row, kind);
  };
  Slots& slots = slots_[w];
  const std::int64_t rows = std::ssize(work.own->rows) * block.rows;
  const auto add_rows = [&](OperandUse& operand, bool second) {
    operand.rows.push_back(add(operand.here, std::ssize(used(work, second)) * block.rows, row_bytes,
                               SlotKind::Landing));
  };
  add_rows(in_, false);
  if (is_gradient()) add_rows(in_s_, true);
  slots.words = add(use_.words, 1, std::ssize(*words_[w]), SlotKind::Landing);
  slots.result =
      add(use_.result, 1, is_gradient() ? value_bytes(work) : rows * row_bytes, SlotKind::Owned);
  if (is_gradient()) return;
  // Shares that follow one another in the host's memory need no copy in Share mode.
  const bool together = values_.runs_together && !has_own_tiles();
  slots.values = brings_values() ? add(use_.values, value_bytes(work) / bytes, bytes,
                                       together ? SlotKind::Landing : SlotKind::Owned)
                                 : value_homes_[w];
  if (!turns()) return;
  slots.table = add(use_.table, 1, std::ssize(*tables_[w]), SlotKind::Landing);
  slots.turned = add(use_.turned, 1, value_bytes(work), SlotKind::Owned);
}

void StaticPass::write_words() {
  // Works with the same blocks and equally many columns have the same words.
  std::map<std::pair<const StaticTileBlocks*, std::int64_t>, std::size_t> known;
  for (const StaticWork& work : works()) {
    const auto [it, is_new] = known.try_emplace({work.own.get(), work.z.size()}, words_.size());
    if (!is_new) {
      words_.push_back(words_[it->second]);
      if (turns()) tables_.push_back(tables_[it->second]);
      continue;
    }
    words_.push_back(std::make_shared<Constants>(words_of(work)));
    if (turns()) tables_.push_back(std::make_shared<Constants>(table_of(work)));
  }
}

// Adds the rows that each tile uses, in runs of neighbouring rows that one tile holds. They are
// charged as rows that all tiles of the machine hold in equal runs of bytes, whichever tile holds
// them here.
void StaticPass::add_gathers(const OperandUse& operand, bool second,
                             std::vector<Gather>& gathers) const {
  const StaticSizes& sizes = cut_.sizes;
  const std::int64_t side = sizes.block.rows;
  for (std::size_t w = 0; w < works().size(); ++w) {
    const StaticWork& work = works()[w];
    const StaticBatchPart& part = cut_.parts[work.part];
    const std::int64_t share = part.spread(operand.all_rows, 0).size();
    Gather& gather = gathers.emplace_back();
    gather.destinations.push_back(operand.rows[w]);
    gather.rows_in_place = operand.all_rows;
    gather.first_in_place = operand.homes[work.part].front();
    Range run;
    const auto flush = [&] {
      for (; run.size() > 0;) {
        const std::int64_t holder = run.begin / share, first = holder * share;
        const std::int64_t end = std::min(run.end, first + share);
        gather.pieces.push_back(
            {operand.homes[work.part][std::size_t(holder)], {run.begin - first, end - first}});
        run.begin = end;
      }
    };
    for (const std::int32_t block : used(work, second)) {
      if (block * side != run.end) {
        flush();
        run.begin = block * side;
      }
      run.end = (block + 1) * side;
    }
    flush();
    const std::int64_t rows = std::ssize(used(work, second)) * side;
    gather.senders =
        planner::even_spread_senders(engine_.machine(), rows * part.z.size() * sizes.bytes(),
                                     operand.all_rows * sizes.size.z * sizes.bytes());
  }
}

// Every tile of a run of values receives the shares of all of them.
std::vector<std::vector<StaticPass::Arrival>> StaticPass::arrivals() const {
  if (has_own_tiles()) return arrivals_on_own_tiles();
  std::vector<std::vector<Arrival>> result(slots_.size());
  for (const StaticHome& home : values_.homes) {
    const std::int64_t first = home.first - values_.stored[std::size_t(home.work)].begin;
    for (const StaticPiece& piece : values_.gradients[home.run].pieces)
      result[std::size_t(piece.work)].push_back(
          {piece.first + home.elements.begin,
           {value_homes_[std::size_t(home.work)], {first, first + home.elements.size()}}});
  }
  return result;
}

// Every tile receives its blocks from wherever their values are stored.
std::vector<std::vector<StaticPass::Arrival>> StaticPass::arrivals_on_own_tiles() const {
  const std::int64_t area = cut_.sizes.block.area();
  struct Taker {
    std::int32_t work = 0, index = 0;  // of the block in the tile's list
  };
  std::vector<std::vector<Taker>> takers(std::size_t(values_.first_value.back() / area));
  for (std::size_t w = 0; w < cut_.works.size(); ++w) {
    const StaticWork& work = cut_.works[w];
    const std::int64_t before = values_.first_value[std::size_t(work.group)] / area;
    for (std::size_t i = 0; i < work.own->block.size(); ++i)
      takers[std::size_t(before + work.own->block[i])].push_back(
          {std::int32_t(w), std::int32_t(i)});
  }
  std::vector<std::vector<Arrival>> result(slots_.size());
  for (const StaticHome& home : values_.homes) {
    const std::int64_t first = home.first - values_.stored[std::size_t(home.work)].begin;
    values_.for_each_place(
        home.work, values_.first_of(home), home.elements.size(),
        [&](std::int64_t place, std::int64_t offset, std::int64_t count) {
          const Range rows{first + offset, first + offset + count};
          for (const Taker& taker : takers[std::size_t(place / area)])
            result[std::size_t(taker.work)].push_back(
                {taker.index * area + place % area, {value_homes_[std::size_t(home.work)], rows}});
        });
  }
  return result;
}

// The values of a tile arrive in the order of its blocks.
std::vector<Gather> StaticPass::value_gathers() const {
  std::vector<std::vector<Arrival>> all = arrivals();
  std::vector<Gather> gathers;
  for (std::size_t w = 0; w < all.size(); ++w) {
    std::ranges::sort(all[w], {}, &Arrival::to);
    Gather& gather = gathers.emplace_back();
    gather.destinations.push_back(slots_[w].values);
    for (const Arrival& arrival : all[w]) {
      const bool goes_on = !gather.pieces.empty() &&
                           gather.pieces.back().slot == arrival.from.slot &&
                           gather.pieces.back().rows.end == arrival.from.rows.begin;
      if (goes_on)
        gather.pieces.back().rows.end = arrival.from.rows.end;
      else
        gather.pieces.push_back(arrival.from);
    }
    gather.senders = planner::even_spread_senders(engine_.machine(), value_bytes(works()[w]),
                                                  values_.first_value.back() * cut_.sizes.bytes());
  }
  return gathers;
}

}  // namespace tessera::runtime::internal
