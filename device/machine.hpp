#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/units.hpp"

namespace tessera::device {

// The machine name by which tools mean this computer itself; no tile machine may carry it.
inline constexpr const char* kHostMachine = "host";

// A tile machine as numbers: everything the planner, the partitioner and the engine know of it.
// A plain value; sources of the presets' figures stand in device/README.md.
struct Machine {
  std::string name;
  std::int64_t tiles = 0;    // 1 .. 1,048,576
  Bytes tile_memory;         // one tile's own memory
  double clock_hz = 0;       // only turns cycles into seconds
  std::int64_t workers = 0;  // hardware threads of a tile, each issues every workers-th cycle
  std::int64_t exchange_bytes_per_cycle = 0;  // received by one tile
  std::int64_t tiles_per_exchange_bus = 1;    // tiles that take the same data double that width
  std::int64_t data_path_bits = 0;            // widest load or store of a worker
  std::int64_t half_half_conv_units = 0;      // multiply-accumulate units for half in, half sums
  std::int64_t half_float_conv_units = 0;
  std::int64_t float_float_conv_units = 0;
  std::int64_t word_bits = 16;  // of one word of bucket meta-information: 16 or 32
  Cycles receive_start;         // a tile begins to receive from one more tile in an exchange
  Cycles sync;                  // one barrier over all tiles
  Cycles launch;                // starting the workers of a tile for one compute step
  Cycles control{48};  // working out one decision from words on a tile, without the barrier

  friend bool operator==(const Machine&, const Machine&) = default;
  // Multiply-accumulate units for this pair of types.
  std::int64_t conv_units(DataType in, DataType sum) const {
    if (in == DataType::Float) return float_float_conv_units;
    return sum == DataType::Half ? half_half_conv_units : half_float_conv_units;
  }
  // Elements of `type` in one data path: float 2, half 4 on a 64-bit path.
  std::int64_t vector_width(DataType type) const { return data_path_bits / (8 * bytes_of(type)); }
};

// "gc200", "bow", "mk1".
std::vector<std::string> machine_names();

// The preset of that name; Error{InvalidArgument} that lists the names there are.
Machine machine_preset(std::string_view name);

// A machine from JSON text: an object whose keys are the fields above, with an optional "base"
// naming a preset that supplies the missing ones. Unknown keys, wrong types and values out of range
// are Error{BadInput} that names `where`, the key, the value and the legal range.
Machine machine_from_json(std::string_view text, std::string_view where);
std::string machine_to_json(const Machine& machine);

// A preset's name, or the path of a JSON file.
Machine load_machine(const std::string& name_or_path);

// Throws as machine_from_json for a machine that cannot be.
void check_machine(const Machine& machine, std::string_view where);

}  // namespace tessera::device
