// The search for the best blocks of a dense gradient, in the program of its product.
#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/selection_cycles.hpp"
#include "tessera/runtime/internal/dense_pass.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

using codelets::ScoredPlace;
using device::SlotKind;

std::pair<std::int64_t, std::int64_t> DensePass::blocks_of(const Round& round, Cell c) const {
  return {ceil_div(rows_of(round, c).size(), selection->block.rows),
          ceil_div(columns_of(round, c).size(), selection->block.cols)};
}

void DensePass::declare_selection(Round& round) {
  Selection& s = *selection;
  Uses uses{{round.partial_buffer, s.taken_buffer, s.request_buffer}, {s.best_buffer}};
  if (&round != &rounds.front()) uses.reads.push_back(s.best_buffer);
  program.compute(Phase::Reduce, uses, all,
                  [this, &round](const device::Tile& tile) { return select(round, tile); });
}

void DensePass::add_selection() {
  constexpr std::int64_t kWordBytes = sizeof(std::uint32_t);
  Selection& s = *selection;
  s.taken_buffer = program.add_buffer("stored blocks", /*resident=*/true);
  s.request_buffer = program.add_buffer("request", /*resident=*/true);
  s.best_buffer = program.add_buffer("best blocks", /*resident=*/true);
  for (const TileId tile : all) {
    std::int64_t words = 1;
    for (const Round& round : rounds) {
      const auto [rows, columns] = blocks_of(round, map.cell(tile));
      words = std::max(words, ceil_div(rows * columns, 32));
    }
    s.words_per_round.push_back(words);
    s.taken.push_back(
        program.add_slot(s.taken_buffer, tile, std::ssize(rounds) * words, kWordBytes));
    s.request.push_back(program.add_slot(s.request_buffer, tile, 1, sizeof(SelectionRequest)));
    const std::int64_t bytes =
        std::int64_t(sizeof(SelectionHeader)) + codelets::best_list_bytes(s.keep);
    s.best.push_back(program.add_slot(s.best_buffer, tile, 1, bytes, SlotKind::Owned));
  }
}

void DensePass::load_selection() {
  Selection& s = *selection;
  for (std::size_t t = 0; t < all.size(); ++t) {
    const std::vector<std::uint32_t>& words = s.taken_words[t];
    engine.load(s.taken[t], rows_at(words.data(), std::ssize(words), sizeof(std::uint32_t)));
    engine.load(s.request[t], one_row(&s.requests[t], sizeof(SelectionRequest)));
  }
}

Cycles DensePass::select(const Round& round, const device::Tile& tile) {
  Selection& s = *selection;
  const auto t = std::size_t(tile.id().value);
  const Cell c = map.cell(tile.id());
  const auto& request = *reinterpret_cast<const SelectionRequest*>(tile.view(s.request[t]).data);
  std::byte* const memory = tile.view(s.best[t]).data;
  auto& header = *reinterpret_cast<SelectionHeader*>(memory);
  if (&round == &rounds.front()) header = {request.threshold, 0};
  if (request.searches == 0) return {};
  codelets::BestList list{.places = reinterpret_cast<ScoredPlace*>(memory + sizeof(header)),
                          .keep = s.keep,
                          .count = header.count,
                          .threshold = header.threshold,
                          .after = request.goes_on != 0 ? &request.after : nullptr};
  const auto number = round.at.rows * plan.rounds.columns + round.at.columns;
  const std::int64_t words = s.words_per_round[t];
  const Range rows = rows_of(round, c), columns = columns_of(round, c);
  const auto [block_rows, block_columns] = blocks_of(round, c);
  codelets::SelectionWork work;
  if (block_rows * block_columns > 0)
    work = codelets::add_best(
        {.gradients = reinterpret_cast<const float*>(tile.view(round.partial[t]).data),
         .rows = rows.size(),
         .columns = columns.size(),
         .block = s.block,
         .score = s.score,
         .first_row = rows.begin / s.block.rows,
         .first_column = columns.begin / s.block.cols,
         .matrix_columns = ceil_div(plan.product.size.columns, s.block.cols),
         .taken = {reinterpret_cast<const std::uint32_t*>(tile.view(s.taken[t]).data) +
                       number * words,
                   std::size_t(words)}},
        list);
  if (&round == &rounds.back()) work += codelets::finish_best(list);
  header = {list.threshold, static_cast<std::uint32_t>(list.count)};
  return codelets::selection_cycles(
      {rows.size() * columns.size(), block_rows * block_columns, s.keep}, work, kernel.workers);
}

}  // namespace tessera::runtime::internal
