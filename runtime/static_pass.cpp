#include "tessera/runtime/internal/static_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/vector_cycles.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

using device::ByteRows;

namespace {

std::vector<StaticWork> turned_works(const StaticCut& cut, Pass pass) {
  return pass == Pass::GradA ? transposed(cut.works) : std::vector<StaticWork>();
}

// Writes a block of [side][side] values transposed.
void transpose_block(const std::byte* from, std::int64_t side, std::int64_t bytes, std::byte* to) {
  for (std::int64_t i = 0; i < side; ++i)
    for (std::int64_t j = 0; j < side; ++j)
      std::memcpy(to + (j * side + i) * bytes, from + (i * side + j) * bytes, std::size_t(bytes));
}

}  // namespace

StaticPass::StaticPass(const StaticCut& cut, const StaticCut& values, Pass pass,
                       TileProgram& program)
    : cut_(cut),
      values_(values),
      pass_(pass),
      turned_(turned_works(cut, pass)),
      row_runs_(is_gradient() ? std::vector<StaticRun>()
                              : runs_of_rows(works(), cut.sizes.block.rows)),
      program_(program),
      sums_(is_gradient() ? std::span(cut.gradients) : std::span<const StaticRun>(row_runs_),
            cut.sizes.type),
      work_of_tile_(std::size_t(program.engine().machine().tiles)) {
  in_.all_rows = pass == Pass::Fwd ? cut.sizes.size.y : cut.sizes.size.x;
  in_s_.all_rows = is_gradient() ? cut.sizes.size.y : 0;
  for (std::int64_t tile = 0; tile < cut.sizes.size.g * cut.sizes.tiles; ++tile)
    all_.emplace_back(tile);
  for (std::size_t w = 0; w < works().size(); ++w) {
    busy_.push_back(works()[w].tile);
    work_of_tile_[std::size_t(works()[w].tile.value)] = std::int32_t(w);
  }
  write_words();
}

void StaticPass::declare_alone(Executor&) {
  declare();
  if (!cut_.works.empty()) program_.check_steps(static_step_order(steps()));
}

StaticSteps StaticPass::steps() const {
  return {.pass = pass_,
          .fetches = engine_.machine().tiles > 1,
          .brings_values = brings_values(),
          .adds = sums_.has_work()};
}

codelets::StaticForm StaticPass::form_of(const StaticWork& work) const {
  const device::Machine& machine = engine_.machine();
  return {.block = cut_.sizes.block,
          .type = cut_.sizes.type,
          .z = work.z.size(),
          .z_grain = cut_.sizes.z_grain,
          .workers = machine.workers,
          .word_bits = machine.word_bits};
}

const std::vector<std::int32_t>& StaticPass::used(const StaticWork& work, bool second) const {
  return is_gradient() && !second ? work.own->rows : work.own->columns;
}

std::int64_t StaticPass::value_bytes(const StaticWork& work) const {
  return std::ssize(work.own->block) * cut_.sizes.block.area() * cut_.sizes.bytes();
}

std::int64_t StaticPass::depth() const {
  std::int64_t deepest = 1;
  for (const StaticRun& run : is_gradient() ? cut_.gradients : row_runs_)
    deepest = std::max(deepest, std::ssize(run.pieces));
  return deepest;
}

void StaticPass::load_operand(const OperandUse& operand, const ByteRows& from) {
  const std::int64_t bytes = cut_.sizes.bytes();
  for (std::size_t p = 0; p < cut_.parts.size(); ++p) {
    const StaticBatchPart& part = cut_.parts[p];
    for (std::int64_t i = 0; i < part.tiles.size(); ++i) {
      const Range rows = part.spread(operand.all_rows, i);
      const std::int64_t first = part.group * operand.all_rows;
      engine_.load(operand.homes[p][std::size_t(i)],
                   from.sub({first + rows.begin, first + rows.end},
                            {part.z.begin * bytes, part.z.end * bytes}));
    }
  }
}

void StaticPass::load() {
  load_operand(in_, arrays_.in);
  if (is_gradient()) load_operand(in_s_, arrays_.in_s);
  const std::int64_t element = cut_.sizes.bytes();
  const auto load = [this](device::SlotId slot, const Constants& data) {
    engine_.load(slot, one_row(data.data(), std::ssize(data)));
  };
  for (std::size_t w = 0; w < slots_.size(); ++w) {
    load(slots_[w].words, *words_[w]);
    if (turns()) load(slots_[w].table, *tables_[w]);
  }
  for (std::size_t w = 0; w < value_homes_.size(); ++w) {
    const Range stored = values_.stored[w];
    if (stored.size() > 0)
      engine_.load(value_homes_[w],
                   rows_at(arrays_.values + stored.begin * element, stored.size(), element));
  }
}

Cycles StaticPass::turn(const device::Tile& tile) {
  const StaticWork& work = work_on(tile.id());
  const Slots& slots = slots_on(tile.id());
  const device::Machine& machine = engine_.machine();
  const BlockShape block = cut_.sizes.block;
  const std::int64_t bytes = cut_.sizes.bytes(), of_block = block.area() * bytes;
  const std::int64_t blocks = std::ssize(work.own->block);
  const std::byte* table = tile.view(slots.table).data;
  const std::byte* from = tile.view(slots.values).data;
  std::byte* to = tile.view(slots.turned).data;
  for (std::int64_t i = 0; i < blocks; ++i, to += of_block) {
    std::uint32_t entry = 0;
    std::memcpy(&entry, table + i * std::int64_t(sizeof entry), sizeof entry);
    if (entry >= blocks)
      throw Error(ErrorCode::CheckFailed,
                  fmt::format("self-check: tile {}: table of transposed blocks, entry {}: there is "
                              "no block {}",
                              tile.id().value, i, entry));
    transpose_block(from + entry * of_block, block.rows, bytes, to);
  }
  const Cycles found = planner::unpack_cycles(blocks, machine);
  if (block.is_element()) return found;
  return found + codelets::transpose_blocks_cycles(blocks, block, cut_.sizes.type, machine.workers);
}

Cycles StaticPass::multiply(const device::Tile& tile) {
  const auto w = std::size_t(work_of_tile_[std::size_t(tile.id().value)]);
  const StaticWork& work = works()[w];
  const Slots& slots = slots_[w];
  const std::int64_t bytes = cut_.sizes.bytes(), z = work.z.size();
  const codelets::StaticForm form = form_of(work);
  codelets::KernelArgs args{.meta = tile.view(slots.words).data,
                            .block = cut_.sizes.block,
                            .in = operand(tile.view(in_.rows[w]), bytes)};
  std::byte* const result = tile.view(slots.result).data;
  if (is_gradient()) {
    args.in_s = operand(tile.view(in_s_.rows[w]), bytes);
    args.gradients = result;
  } else {
    args.values = tile.view(turns() ? slots.turned : slots.values).data;
    args.out = {result, std::ssize(work.own->rows) * args.block.rows, z, z};
  }
  if (engine_.is_faulty()) {
    const auto fault = codelets::check_static_words(
        form, operation(), args,
        {std::ssize(*words_[w]) / form.word_bytes(), value_bytes(work) / bytes});
    if (fault)
      throw Error(ErrorCode::CheckFailed,
                  fmt::format("self-check: tile {}: static words, word {}: {}", tile.id().value,
                              fault->word, fault->what));
  }
  // Rows that were not brought here are read where they are, among all rows.
  codelets::StaticPlaces places;
  const auto are_elsewhere = [&](const codelets::Operand& rows, bool second) {
    return rows.rows > std::ssize(used(work, second)) * cut_.sizes.block.rows;
  };
  if (are_elsewhere(args.in, false)) places.in = used(work, false);
  if (is_gradient() && are_elsewhere(args.in_s, true)) places.in_s = used(work, true);
  codelets::run_static(form, operation(), args, places);
  return codelets::static_cycles(form, operation(), args.meta);
}

void StaticPass::collect_rows(const StaticShare& share) const {
  const StaticWork& work = works()[std::size_t(share.work)];
  const std::int64_t bytes = cut_.sizes.bytes(), side = cut_.sizes.block.rows;
  const std::int64_t z = work.z.size(), group = turns() ? cut_.sizes.size.y : cut_.sizes.size.x;
  const std::byte* from = engine_.view(share.slot).data + share.first * bytes;
  for (std::int64_t e = share.at; e < share.at + share.count;) {
    const std::int64_t row = e / z, column = e % z;
    const std::int64_t run = std::min(z - column, share.at + share.count - e);
    const std::int64_t global = work.own->rows[std::size_t(row / side)] * side + row % side;
    std::memcpy(arrays_.out.data + (work.group * group + global) * arrays_.out.stride +
                    (work.z.begin + column) * bytes,
                from, std::size_t(run * bytes));
    from += run * bytes;
    e += run;
  }
}

void StaticPass::collect_gradients(const StaticShare& share) const {
  const std::int64_t bytes = cut_.sizes.bytes();
  const std::byte* const from = engine_.view(share.slot).data + share.first * bytes;
  cut_.for_each_place(share.work, share.at, share.count,
                      [&](std::int64_t place, std::int64_t offset, std::int64_t count) {
                        std::memcpy(arrays_.gradients + place * bytes, from + offset * bytes,
                                    std::size_t(count * bytes));
                      });
}

// Rows without blocks are zero. Their share of the cost is in that of arranging the result, which
// counts all rows.
void StaticPass::collect() {
  for (std::int64_t row = 0; !is_gradient() && row < arrays_.out.rows; ++row)
    std::memset(arrays_.out.data + row * arrays_.out.stride, 0, std::size_t(arrays_.out.row_bytes));
  for (const StaticShare& share : sums_.shares())
    is_gradient() ? collect_gradients(share) : collect_rows(share);
}

}  // namespace tessera::runtime::internal
