#include "tessera/device/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/device/internal/memory_use.hpp"

namespace tessera::device {
namespace {

using internal::Slots;

Bytes bytes_of(const SlotSpec& spec) { return Bytes(spec.rows * spec.row_bytes); }

std::vector<Bytes> bytes_by_stage(const Slots& slots, TileId tile) {
  std::vector<Bytes> by_stage;
  for (const SlotId id : slots.of_tile(tile)) {
    const SlotSpec& spec = slots[id].spec;
    if (std::size_t(spec.last_stage) >= by_stage.size())
      by_stage.resize(std::size_t(spec.last_stage) + 1);
    for (int p = spec.first_stage; p <= spec.last_stage; ++p)
      by_stage[std::size_t(p)] += bytes_of(spec);
  }
  return by_stage;
}

TilePeak peak_of(const std::vector<Bytes>& by_stage) {
  if (by_stage.empty()) return {};
  const auto most = std::max_element(by_stage.begin(), by_stage.end());
  return {*most, static_cast<int>(most - by_stage.begin())};
}

std::vector<HeldBuffer> held(const Slots& slots, TileId tile, int stage) {
  std::vector<HeldBuffer> buffers;
  for (const SlotId id : slots.of_tile(tile)) {
    const SlotSpec& spec = slots[id].spec;
    if (stage < spec.first_stage || spec.last_stage < stage) continue;
    const auto same = std::find_if(buffers.begin(), buffers.end(),
                                   [&](const HeldBuffer& b) { return b.name == spec.name; });
    if (same == buffers.end())
      buffers.push_back({std::string(spec.name), bytes_of(spec)});
    else
      same->bytes += bytes_of(spec);
  }
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const HeldBuffer& a, const HeldBuffer& b) { return a.bytes > b.bytes; });
  return buffers;
}

}  // namespace

Bytes MemoryUse::high_water() const {
  return tiles.empty() ? Bytes() : tiles[std::size_t(fullest.value)].bytes;
}

std::string MemoryUse::stage_name(int stage) const {
  return std::size_t(stage) < stages.size() ? stages[std::size_t(stage)] : std::string();
}

std::string to_string(const MemoryUse& use) {
  if (use.tiles.empty()) return "no tiles\n";
  const TilePeak& peak = use.tiles[std::size_t(use.fullest.value)];
  std::string text = fmt::format("fullest tile {}: {} bytes in stage {} {}\n", use.fullest.value,
                                 peak.bytes.value, peak.stage, use.stage_name(peak.stage));
  for (const HeldBuffer& buffer : use.at_peak)
    text += fmt::format("  {:<28} {:>12} bytes\n", buffer.name, buffer.bytes.value);
  text += "bytes on that tile by stage\n";
  for (std::size_t p = 0; p < use.by_stage.size(); ++p)
    text += fmt::format("  {:>2} {:<25} {:>12}{}\n", p, use.stage_name(int(p)),
                        use.by_stage[p].value, int(p) == peak.stage ? "  peak" : "");
  return text;
}

namespace internal {

MemoryUse memory_use(const Slots& slots) {
  MemoryUse use;
  for (std::int64_t t = 0; t < slots.tiles(); ++t) {
    use.tiles.push_back(peak_of(bytes_by_stage(slots, TileId(t))));
    if (use.tiles.back().bytes > use.high_water()) use.fullest = TileId(t);
  }
  use.by_stage = bytes_by_stage(slots, use.fullest);
  use.at_peak = held(slots, use.fullest, use.tiles[std::size_t(use.fullest.value)].stage);
  return use;
}

}  // namespace internal

}  // namespace tessera::device
