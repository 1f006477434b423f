#include "tessera/runtime/internal/keep_pass.hpp"

#include <algorithm>
#include <cstring>

#include "tessera/base/int_math.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"

namespace tessera::runtime::internal {

using device::SlotKind;

KeepPass::KeepPass(Masks masks, const ValueHomes& homes, DataType type, Bytes resident,
                   TileProgram& program)
    : homes_(homes), type_(type), resident_(resident), program_(program) {
  make_shares(masks);
}

void KeepPass::make_shares(Masks masks) {
  const std::int64_t workers = engine_.machine().workers;
  shares_.resize(homes_.tiles.size());
  for (Share& share : shares_) share.kept.assign(std::size_t(ceil_div(homes_.per_tile, 32)), ~0U);
  std::vector<std::int64_t> partial(shares_.size());  // blocks that are not kept whole
  std::size_t first = 0;
  std::int64_t area = 1;
  for (const sparse::Csr<float>& mask : masks) {
    area = mask.block.area();
    for (std::int64_t b = 0; b < mask.blocks(); ++b, first += std::size_t(area)) {
      const auto block = mask.values.begin() + b * area;
      if (std::find(block, block + area, 0.0f) == block + area) continue;
      ++partial[std::size_t(homes_.positions[first] / homes_.per_tile)];
      for (std::int64_t i = 0; i < area; ++i) {
        const std::int64_t place = homes_.positions[first + std::size_t(i)];
        const std::int64_t bit = place % homes_.per_tile;
        if (block[i] == 0)
          shares_[std::size_t(place / homes_.per_tile)].kept[std::size_t(bit / 32)] &=
              ~(1U << (bit % 32));
      }
    }
  }
  for (std::size_t h = 0; h < shares_.size(); ++h) {
    const std::int64_t blocks = ceil_div(partial[h], workers);
    shares_[h].slowest = {.runs = blocks, .values = blocks * area, .masked = blocks * area};
  }
}

void KeepPass::declare_alone(Executor&) {
  const BufferId words = program_.add_buffer("words of the buckets", /*resident=*/true),
                 mask = program_.add_buffer("mask of values", /*resident=*/true),
                 values = program_.add_buffer("values"),
                 result = program_.add_buffer("kept values");
  home_of_.assign(std::size_t(engine_.machine().tiles), -1);
  for (std::size_t h = 0; h < shares_.size(); ++h) {
    Share& share = shares_[h];
    const TileId tile = homes_.tiles[h];
    home_of_[std::size_t(tile.value)] = std::int64_t(h);
    const std::int64_t bytes = homes_.per_tile * bytes_of(type_);
    program_.add_slot(words, tile, 1, resident_.value);
    share.mask = program_.add_slot(mask, tile, 1,
                                   std::ssize(share.kept) * std::int64_t{sizeof(std::uint32_t)});
    share.values = program_.add_slot(values, tile, 1, bytes);
    share.result = program_.add_slot(result, tile, 1, bytes, SlotKind::Owned);
  }
  program_.step(NodeKind::Load, {}, {{}, {words, mask, values}}, [this] { load(); });
  program_.compute(Phase::Activate, {{mask, values}, {result}}, homes_.tiles,
                   [this](const device::Tile& tile) { return keep(tile); });
  program_.step(NodeKind::Collect, {}, {{result}, {}}, [] {});
}

void KeepPass::load() {
  const std::int64_t bytes = homes_.per_tile * bytes_of(type_);
  for (std::size_t h = 0; h < shares_.size(); ++h) {
    engine_.load(shares_[h].values, one_row(staged_.data() + std::int64_t(h) * bytes, bytes));
    engine_.load(shares_[h].mask, one_row(shares_[h].kept.data(),
                                          std::ssize(std::as_bytes(std::span(shares_[h].kept)))));
  }
}

Cycles KeepPass::keep(const device::Tile& tile) const {
  const Share& share = shares_[std::size_t(home_of_[std::size_t(tile.id().value)])];
  const auto* const kept = reinterpret_cast<const std::uint32_t*>(tile.view(share.mask).data);
  const std::byte* const from = tile.view(share.values).data;
  std::byte* const to = tile.view(share.result).data;
  const std::int64_t element = bytes_of(type_);
  std::memcpy(to, from, std::size_t(homes_.per_tile * element));  // it changes them in place
  for (std::int64_t i = 0; i < homes_.per_tile; ++i)
    if ((kept[i / 32] >> (i % 32) & 1) == 0) std::memset(to + i * element, 0, std::size_t(element));
  return codelets::keep_masked_cycles(share.slowest, engine_.machine().workers);
}

void KeepPass::start(std::span<const float> values) {
  with_type(type_, [&]<class T>(T) {
    staged_.assign(std::size_t(homes_.per_tile) * homes_.tiles.size() * sizeof(T), std::byte());
    T* const staged = reinterpret_cast<T*>(staged_.data());
    for (std::size_t i = 0; i < values.size(); ++i) staged[homes_.positions[i]] = T(values[i]);
  });
}

void KeepPass::finish(std::span<float> values) const {
  with_type(type_, [&]<class T>(T) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t place = homes_.positions[i];
      const Share& share = shares_[std::size_t(place / homes_.per_tile)];
      values[i] = float(
          reinterpret_cast<const T*>(engine_.view(share.result).data)[place % homes_.per_tile]);
    }
  });
}

}  // namespace tessera::runtime::internal
