#include "tessera/runtime/internal/row_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"
#include "tessera/runtime/internal/layer_check.hpp"

namespace tessera::runtime::internal {

using device::SlotId;
using device::SlotKind;

namespace {

// A row of a mask: its first block in the order of all masks' values, and the number of blocks.
struct MaskRow {
  std::int64_t first_value = 0, blocks = 0;
  BlockShape block;

  std::int64_t values() const { return blocks * block.cols; }
};

std::vector<MaskRow> rows_of(std::span<const sparse::Csr<float>> masks) {
  std::vector<MaskRow> rows;
  std::int64_t before = 0;  // values of the masks before this one
  for (const sparse::Csr<float>& mask : masks) {
    for (std::int64_t r = 0; r < mask.block_rows(); ++r) {
      const std::int64_t begin = mask.row_begin[std::size_t(r)];
      const std::int64_t blocks = mask.row_begin[std::size_t(r) + 1] - begin;
      for (std::int64_t i = 0; i < mask.block.rows && blocks > 0; ++i)
        rows.push_back(
            {before + begin * mask.block.area() + i * mask.block.cols, blocks, mask.block});
    }
    before += std::ssize(mask.values);
  }
  return rows;
}

// Returns the tile of each row.
std::vector<std::int64_t> tiles_of(const std::vector<MaskRow>& rows, std::int64_t tiles) {
  std::vector<std::size_t> by_length(rows.size());
  std::iota(by_length.begin(), by_length.end(), 0);
  std::stable_sort(by_length.begin(), by_length.end(), [&](std::size_t a, std::size_t b) {
    return rows[a].values() > rows[b].values();
  });
  using Load = std::pair<std::int64_t, std::int64_t>;  // values, tile
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (std::int64_t t = 0; t < tiles; ++t) least.push({0, t});
  std::vector<std::int64_t> tile_of(rows.size());
  for (const std::size_t row : by_length) {
    const auto [values, tile] = least.top();
    least.pop();
    tile_of[row] = tile;
    least.push({values + rows[row].values(), tile});
  }
  return tile_of;
}

// Calls visit(place, first, count) for the runs of adjacent homes of the values first .. of
// `order`.
template <class Visit>
void for_each_home_run(const ValueHomes& homes, std::span<const std::int64_t> order,
                       const Visit& visit) {
  const auto place = [&](std::size_t i) { return homes.positions[std::size_t(order[i])]; };
  for (std::size_t first = 0, i = 1; first < order.size(); ++i) {
    const bool goes_on =
        i < order.size() && place(i) == place(i - 1) + 1 && place(i) % homes.per_tile != 0;
    if (goes_on) continue;
    visit(place(first), std::int64_t(first), std::int64_t(i - first));
    first = i;
  }
}

}  // namespace

DealtRows deal_rows(std::span<const sparse::Csr<float>> masks, std::int64_t tiles) {
  const std::vector<MaskRow> rows = rows_of(masks);
  const std::vector<std::int64_t> tile_of = tiles_of(rows, tiles);
  std::vector<std::size_t> by_tile(rows.size());
  std::iota(by_tile.begin(), by_tile.end(), 0);
  std::stable_sort(by_tile.begin(), by_tile.end(),
                   [&](std::size_t a, std::size_t b) { return tile_of[a] < tile_of[b]; });
  DealtRows dealt;
  dealt.row_begin.push_back(0);
  dealt.tile_begin.assign(std::size_t(tiles) + 1, 0);
  if (!masks.empty() && !masks.front().block.is_element()) dealt.run = masks.front().block.cols;
  for (const std::size_t r : by_tile) {
    const MaskRow& row = rows[r];
    for (std::int64_t b = 0; b < row.blocks; ++b)
      for (std::int64_t c = 0; c < row.block.cols; ++c)
        dealt.order.push_back(row.first_value + b * row.block.area() + c);
    dealt.row_begin.push_back(std::ssize(dealt.order));
    ++dealt.tile_begin[std::size_t(tile_of[r]) + 1];
  }
  std::partial_sum(dealt.tile_begin.begin(), dealt.tile_begin.end(), dealt.tile_begin.begin());
  std::vector<float> all;
  for (const sparse::Csr<float>& mask : masks)
    all.insert(all.end(), mask.values.begin(), mask.values.end());
  if (std::find(all.begin(), all.end(), 0.0f) == all.end()) return dealt;
  for (const std::int64_t value : dealt.order) dealt.kept.push_back(all[std::size_t(value)] != 0);
  return dealt;
}

RowPass::RowPass(Kind kind, const DealtRows& rows, const ValueHomes& homes, float scale,
                 DataType type, Bytes resident, TileProgram& program)
    : kind_(kind),
      dealt_(rows),
      homes_(homes),
      scale_(scale),
      type_(type),
      tile_bytes_(resident),
      program_(program) {
  make_shares();
}

void RowPass::make_shares() {
  for (std::int64_t t = 0; t < dealt_.tiles(); ++t) {
    const std::int64_t first = dealt_.tile_begin[std::size_t(t)],
                       last = dealt_.tile_begin[std::size_t(t) + 1];
    if (first == last) break;  // later tiles have no rows either
    Share share;
    const std::int64_t begin = dealt_.row_begin[std::size_t(first)];
    for (std::int64_t r = first; r <= last; ++r)
      share.row_begin.push_back(std::int32_t(dealt_.row_begin[std::size_t(r)] - begin));
    share.kept = kept_words(begin, share.row_begin.back());
    share.slowest = slowest_worker(t);
    shares_.push_back(std::move(share));
    tiles_.emplace_back(t);
  }
}

// Returns a bit for each of `count` values, which is set if it is kept; nothing if all are.
std::vector<std::uint32_t> RowPass::kept_words(std::int64_t first, std::int64_t count) const {
  if (dealt_.kept.empty()) return {};
  std::vector<std::uint32_t> words(std::size_t(ceil_div(count, 32)));
  for (std::int64_t i = 0; i < count; ++i)
    if (dealt_.kept[std::size_t(first + i)]) words[std::size_t(i / 32)] |= 1U << (i % 32);
  return words;
}

// Rows are dealt to the workers in turn.
codelets::SoftmaxWork RowPass::slowest_worker(std::int64_t tile) const {
  const std::int64_t workers = engine_.machine().workers;
  std::vector<codelets::SoftmaxWork> of_worker(static_cast<std::size_t>(workers));
  const std::int64_t first = dealt_.tile_begin[std::size_t(tile)];
  for (std::int64_t r = first; r < dealt_.tile_begin[std::size_t(tile) + 1]; ++r) {
    codelets::SoftmaxWork& work = of_worker[std::size_t((r - first) % workers)];
    const std::int64_t begin = dealt_.row_begin[std::size_t(r)],
                       values = dealt_.row_begin[std::size_t(r) + 1] - begin;
    const std::int64_t run = dealt_.run > 0 ? dealt_.run : values;
    ++work.rows;
    work.runs += values / run;
    work.values += values / run * round_up(run, 2);
    for (std::int64_t i = begin; i < begin + values && !dealt_.kept.empty(); i += run) {
      const auto at = dealt_.kept.begin() + i;
      if (std::find(at, at + run, false) != at + run) work.masked += run;
    }
  }
  return *std::max_element(of_worker.begin(), of_worker.end(), [&](const auto& a, const auto& b) {
    return cycles_of(a) < cycles_of(b);
  });
}

Cycles RowPass::cycles_of(const codelets::SoftmaxWork& work) const {
  const std::int64_t workers = engine_.machine().workers;
  return kind_ == Kind::Softmax ? codelets::softmax_cycles(work, type_, workers)
                                : codelets::softmax_gradient_cycles(work, type_, workers);
}

Cycles RowPass::planned() const {
  const device::Machine& machine = engine_.machine();
  Cycles sum = machine.launch, slowest;
  for (const Share& share : shares_) slowest = std::max(slowest, cycles_of(share.slowest));
  for (const device::Exchange* exchange : {bring_, return_})
    sum += exchange->cycles + (exchange->moved > Bytes() ? machine.sync : Cycles());
  return sum + slowest;
}

void RowPass::declare_alone(Executor&) {
  add_slots();
  list_exchanges();
  Uses loaded{{}, {resident_, table_, mask_}}, computed{{table_, mask_}, {result_}};
  loaded.add({{}, home_buffers_});
  computed.add({arrived_buffers_, {}});
  program_.step(NodeKind::Load, {}, loaded, [this] { load(); });
  program_.exchange(Phase::HandOver, {home_buffers_, arrived_buffers_}, bring_);
  program_.compute(Phase::Activate, computed, tiles_,
                   [this](const device::Tile& tile) { return compute(tile); });
  program_.exchange(Phase::HandOver, {{result_}, {home_out_buffer_}}, return_);
  program_.step(NodeKind::Collect, {}, {{home_out_buffer_}, {}}, [] {});
}

void RowPass::add_slots() {
  constexpr const char* kHomes[2][2] = {{"scores", ""}, {"softmax", "gradient of the softmax"}};
  constexpr const char* kRows[2][2] = {{"rows of scores", ""},
                                       {"rows of the softmax", "rows of its gradient"}};
  const auto kind = static_cast<std::size_t>(kind_);
  resident_ = program_.add_buffer("words of the buckets", /*resident=*/true);
  table_ = program_.add_buffer("table of rows", /*resident=*/true);
  mask_ = program_.add_buffer("mask of rows", /*resident=*/true);
  for (std::size_t k = 0; k < std::size_t(inputs()); ++k) {
    home_buffers_.push_back(program_.add_buffer(kHomes[kind][k]));
    arrived_buffers_.push_back(program_.add_buffer(kRows[kind][k]));
  }
  result_ = program_.add_buffer("rows of results");
  home_out_buffer_ = program_.add_buffer("results");
  const auto add = [&](BufferId buffer, TileId tile, std::int64_t bytes, SlotKind slot_kind) {
    return program_.add_slot(buffer, tile, 1, bytes, slot_kind);
  };
  home_in_.resize(std::size_t(inputs()));
  for (const TileId tile : homes_.tiles) {
    const std::int64_t bytes = homes_.per_tile * element();
    add(resident_, tile, tile_bytes_.value, SlotKind::Landing);
    for (std::size_t k = 0; k < home_in_.size(); ++k)
      home_in_[k].push_back(add(home_buffers_[k], tile, bytes, SlotKind::Landing));
    home_out_.push_back(add(home_out_buffer_, tile, bytes, SlotKind::Owned));
  }
  constexpr auto kWord = static_cast<std::int64_t>(sizeof(std::uint32_t));
  for (std::size_t t = 0; t < shares_.size(); ++t) {
    Share& share = shares_[t];
    const std::int64_t bytes = share.row_begin.back() * element();
    share.table = add(table_, tiles_[t], std::ssize(share.row_begin) * kWord, SlotKind::Landing);
    share.mask = add(mask_, tiles_[t], std::ssize(share.kept) * kWord, SlotKind::Landing);
    for (const BufferId buffer : arrived_buffers_)
      share.arrived.push_back(add(buffer, tiles_[t], bytes, SlotKind::Owned));
    share.result = add(result_, tiles_[t], bytes, SlotKind::Owned);
  }
}

void RowPass::list_exchanges() {
  std::vector<device::Move> bring, back;
  for (std::size_t t = 0; t < shares_.size(); ++t) {
    const Share& share = shares_[t];
    const std::int64_t begin = dealt_.row_begin[std::size_t(dealt_.tile_begin[t])];
    const auto order =
        std::span(dealt_.order).subspan(std::size_t(begin), std::size_t(share.row_begin.back()));
    for_each_home_run(homes_, order, [&](std::int64_t place, std::int64_t at, std::int64_t count) {
      const auto home = static_cast<std::size_t>(place / homes_.per_tile);
      const std::int64_t offset = place % homes_.per_tile * element(), bytes = count * element();
      for (std::size_t k = 0; k < home_in_.size(); ++k)
        bring.push_back({home_in_[k][home], share.arrived[k], offset, at * element(), bytes});
      back.push_back({share.result, home_out_[home], at * element(), offset, bytes});
    });
  }
  bring_ = program_.exchange_of({}, std::move(bring));
  return_ = program_.exchange_of({}, std::move(back));
}

void RowPass::load() {
  const std::int64_t bytes = homes_.per_tile * element();
  for (std::size_t k = 0; k < home_in_.size(); ++k)
    for (std::size_t h = 0; h < home_in_[k].size(); ++h)
      engine_.load(home_in_[k][h], one_row(staged_[k].data() + std::int64_t(h) * bytes, bytes));
  for (const Share& share : shares_) {
    const auto words = [](const auto& from) {
      return one_row(from.data(), std::ssize(std::as_bytes(std::span(from))));
    };
    engine_.load(share.table, words(share.row_begin));
    engine_.load(share.mask, words(share.kept));
  }
}

// Throws Error{CheckFailed} if the table would lead out of the rows: its memory was damaged.
codelets::SoftmaxRows RowPass::rows_on(const device::Tile& tile, const Share& share) const {
  const auto* const begin = reinterpret_cast<const std::int32_t*>(tile.view(share.table).data);
  const std::span<const std::int32_t> table(begin, share.row_begin.size());
  if (table.front() != 0 || table.back() != share.row_begin.back() ||
      !std::is_sorted(table.begin(), table.end()))
    throw Error(ErrorCode::CheckFailed,
                fmt::format("tile {}: its table of rows does not ascend from 0 to {}",
                            tile.id().value, share.row_begin.back()));
  const auto* const kept = reinterpret_cast<const std::uint32_t*>(tile.view(share.mask).data);
  return {
      .row_begin = table, .run = dealt_.run, .kept = {kept, share.kept.size()}, .scale = scale_};
}

template <class T>
void RowPass::compute_as(const device::Tile& tile, const Share& share) const {
  const codelets::SoftmaxRows rows = rows_on(tile, share);
  const auto in = [&](std::size_t k) {
    return reinterpret_cast<const T*>(tile.view(share.arrived[k]).data);
  };
  T* const out = reinterpret_cast<T*>(tile.view(share.result).data);
  if (kind_ == Kind::Softmax)
    codelets::softmax(rows, in(0), out);
  else
    codelets::softmax_gradient(rows, in(0), in(1), out);
}

Cycles RowPass::compute(const device::Tile& tile) const {
  const Share& share = shares_[std::size_t(tile.id().value)];
  with_type(type_, [&]<class T>(T) { compute_as<T>(tile, share); });
  return cycles_of(share.slowest);
}

template <class T>
void RowPass::read_inputs(Inputs inputs) {
  const std::int64_t places = std::ssize(homes_.tiles) * homes_.per_tile;
  staged_.resize(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    staged_[k].resize(std::size_t(places) * sizeof(T));
    T* const staged = reinterpret_cast<T*>(staged_[k].data());
    for (std::size_t i = 0; i < inputs[k].size(); ++i)
      staged[homes_.positions[i]] = T(inputs[k][i]);
  }
}

template <class T>
void RowPass::write_results(std::span<float> out) const {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t place = homes_.positions[i];
    const auto home = static_cast<std::size_t>(place / homes_.per_tile);
    const auto* const share = reinterpret_cast<const T*>(engine_.view(home_out_[home]).data);
    out[i] = float(share[place % homes_.per_tile]);
  }
}

// Computes all results again by the reference kernel. Throws Error{CheckFailed} for another one.
template <class T>
void RowPass::check(Inputs inputs, std::span<const float> results,
                    const PassOptions& options) const {
  std::vector<std::int32_t> row_begin(dealt_.row_begin.begin(), dealt_.row_begin.end());
  const std::vector<std::uint32_t> kept = kept_words(0, std::ssize(dealt_.order));
  std::vector<std::vector<T>> in(inputs.size(), std::vector<T>(results.size()));
  std::vector<T> wanted(results.size());
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (std::size_t i = 0; i < in[k].size(); ++i)
      in[k][i] = T(inputs[k][std::size_t(dealt_.order[i])]);
  const codelets::SoftmaxRows rows{row_begin, dealt_.run, kept, scale_};
  if (kind_ == Kind::Softmax)
    codelets::softmax_reference(rows, in[0].data(), wanted.data());
  else
    codelets::softmax_gradient_reference(rows, in[0].data(), in[1].data(), wanted.data());
  verify::Checksums& sums = *options.self_check;
  sums = {};
  sums.exact = true;
  sums.compared = std::ssize(results);
  const verify::MemoryDamage damage = memory_damage({program_.damage()});
  sums.damaged = damage.slots;
  sums.first_damage = damage.first;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto at = static_cast<std::size_t>(dealt_.order[i]);
    const float want = float(wanted[i]);
    if (std::memcmp(&want, &results[at], sizeof(float)) == 0) continue;
    sums.wrong_rows = 1;
    sums.first_wrong_row = std::int64_t(at);
    throw Error(ErrorCode::CheckFailed,
                fmt::format("self-check: {}: value {} is {}; it must be {}",
                            program_.program().name, at, results[at], want));
  }
}

void RowPass::start(Inputs inputs) {
  with_type(type_, [&]<class T>(T) { read_inputs<T>(inputs); });
}

void RowPass::finish(Inputs inputs, std::span<float> out, const PassOptions& options) const {
  with_type(type_, [&]<class T>(T) {
    if (options.self_check == nullptr) return write_results<T>(out);
    std::vector<float> results(out.size());  // `out` may be an input
    write_results<T>(results);
    check<T>(inputs, results, options);
    std::copy(results.begin(), results.end(), out.begin());
  });
}

}  // namespace tessera::runtime::internal
