#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device/ledger.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/device/memory.hpp"
#include "tessera/json/value.hpp"

namespace tessera::report {

// The events of a trace in Chrome's format (JSON), for Perfetto or chrome://tracing. Times are in
// microseconds.
class TraceEvents {
 public:
  // Adds the name of the process ("process_name"), or of a track ("thread_name").
  void add_name(const char* what, std::int64_t track, const std::string& name);

  // Adds what a track does from `begin` on.
  void add_span(std::string_view name, std::string_view category, std::int64_t track, double begin,
                double length, json::Value args);

  // Adds the value of a counter from `begin` on.
  void add_count(std::string_view name, std::int64_t track, double begin, json::Value args);

  // Returns the text of the trace, whose otherData are `other`.
  std::string text(json::Value other);

 private:
  json::Value events_ = json::List();
};

// The limits on the size of a trace.
struct TraceLimits {
  // The largest number of tracks of tiles. If there are more tiles, equal groups of them share a
  // track.
  std::int64_t tracks = 64;

  // The largest number of events. If they do not suffice, groups grow; after that, the last steps
  // are left out.
  std::int64_t events = 100'000;

  // The tiles that have tracks: the first one and their number; 0: all from the first one on.
  std::int64_t first_tile = 0, tiles = 0;
};

// One run of a pass, the input of a trace.
struct TracedRun {
  std::string name;
  const device::Machine& machine;
  const device::Ledger& ledger;
  const device::TileLedger& tiles;  // TileOptions::tiles of the same run; empty: no tracks of tiles
  const device::MemoryUse& memory;  // of the same program
};

// Returns a run in Chrome's trace format (JSON), for Perfetto or chrome://tracing. The trace has
//   * a track of the whole machine with every step and the sync or launch before it; their lengths
//     add up to the total of the ledger;
//   * a track for each tile, or for the slowest tile of each group of tiles;
//   * a counter of the bytes in use on the fullest tile.
// Times are microseconds of the machine's clock; `args` has the exact cycles with their origin.
// Events are in the order of time. There are at most limits.events events of at most
// kBytesOfAnEvent bytes each; otherData counts the steps that were left out. Throws
// Error{InvalidArgument} if limits.tracks < 0, limits.events < 100 or the machine does not have the
// tiles.
std::string to_trace(const TracedRun& run, const TraceLimits& limits = {});

// Returns the traces of several runs as one: each is a process with tracks of its own, and begins
// where the last event of the one before it ends. otherData is a list. Throws Error{BadInput} for a
// text that is not of to_trace().
std::string join_traces(const std::vector<std::string>& traces);

// The largest number of bytes that one event of a trace occupies.
inline constexpr std::int64_t kBytesOfAnEvent = 320;

}  // namespace tessera::report
