#include "tessera/device/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/device/internal/memory_use.hpp"

namespace tessera::device {
namespace {

using internal::Slots;

Bytes bytes_of(const SlotSpec& spec) { return Bytes(spec.rows * spec.row_bytes); }

std::vector<Bytes> bytes_by_phase(const Slots& slots, TileId tile) {
  std::vector<Bytes> by_phase;
  for (const SlotId id : slots.of_tile(tile)) {
    const SlotSpec& spec = slots[id].spec;
    if (std::size_t(spec.last_phase) >= by_phase.size())
      by_phase.resize(std::size_t(spec.last_phase) + 1);
    for (int p = spec.first_phase; p <= spec.last_phase; ++p)
      by_phase[std::size_t(p)] += bytes_of(spec);
  }
  return by_phase;
}

TilePeak peak_of(const std::vector<Bytes>& by_phase) {
  if (by_phase.empty()) return {};
  const auto most = std::max_element(by_phase.begin(), by_phase.end());
  return {*most, static_cast<int>(most - by_phase.begin())};
}

std::vector<HeldBuffer> held(const Slots& slots, TileId tile, int phase) {
  std::vector<HeldBuffer> buffers;
  for (const SlotId id : slots.of_tile(tile)) {
    const SlotSpec& spec = slots[id].spec;
    if (phase < spec.first_phase || spec.last_phase < phase) continue;
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

std::string MemoryUse::phase_name(int phase) const {
  return std::size_t(phase) < phases.size() ? phases[std::size_t(phase)] : std::string();
}

std::string to_string(const MemoryUse& use) {
  if (use.tiles.empty()) return "no tiles\n";
  const TilePeak& peak = use.tiles[std::size_t(use.fullest.value)];
  std::string text = fmt::format("fullest tile {}: {} bytes in phase {} {}\n", use.fullest.value,
                                 peak.bytes.value, peak.phase, use.phase_name(peak.phase));
  for (const HeldBuffer& buffer : use.at_peak)
    text += fmt::format("  {:<28} {:>12} bytes\n", buffer.name, buffer.bytes.value);
  text += "bytes on that tile by phase\n";
  for (std::size_t p = 0; p < use.by_phase.size(); ++p)
    text += fmt::format("  {:>2} {:<25} {:>12}{}\n", p, use.phase_name(int(p)),
                        use.by_phase[p].value, int(p) == peak.phase ? "  peak" : "");
  return text;
}

namespace internal {

MemoryUse memory_use(const Slots& slots) {
  MemoryUse use;
  for (std::int64_t t = 0; t < slots.tiles(); ++t) {
    use.tiles.push_back(peak_of(bytes_by_phase(slots, TileId(t))));
    if (use.tiles.back().bytes > use.high_water()) use.fullest = TileId(t);
  }
  use.by_phase = bytes_by_phase(slots, use.fullest);
  use.at_peak = held(slots, use.fullest, use.tiles[std::size_t(use.fullest.value)].phase);
  return use;
}

}  // namespace internal

}  // namespace tessera::device
