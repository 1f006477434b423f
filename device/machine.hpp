#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/units.hpp"

namespace tessera::device {

// The machine name of this computer in the tools. load_machine refuses it.
inline constexpr const char* kHostMachine = "host";

// The description of a tile machine: all figures that the planner, the partitioner and the engine
// use. A plain value. device/README.md has the legal ranges, and the sources of the presets'
// figures.
struct Machine {
  std::string name;
  std::int64_t tiles = 0;    // 1 .. 1,048,576
  Bytes tile_memory;         // bytes of one tile
  double clock_hz = 0;       // cycles per second; only converts cycles to seconds
  std::int64_t workers = 0;  // hardware threads of a tile; each issues in every workers-th cycle
  std::int64_t exchange_bytes_per_cycle = 0;  // that one tile receives
  // Tiles that share an exchange bus. Data that all of them receive arrive at this multiple of the
  // width.
  std::int64_t tiles_per_exchange_bus = 1;
  std::int64_t data_path_bits = 0;          // bits of the widest load or store of a worker
  std::int64_t half_half_conv_units = 0;    // multiply-accumulate units, half inputs and half sums
  std::int64_t half_float_conv_units = 0;   // half inputs and float sums
  std::int64_t float_float_conv_units = 0;  // float inputs and float sums
  std::int64_t word_bits = 16;              // of a word of bucket meta-information: 16 or 32
  // Bytes that a tile puts in order in a cycle when operands come from an even spread over all
  // tiles or results go there: 1 .. 2^20.
  std::int64_t arrange_bytes_per_cycle = 1;
  Cycles receive_start;  // start of receiving from one more tile in an exchange
  Cycles sync;           // one barrier over all tiles
  Cycles launch;         // starting the workers of a tile for one compute step
  Cycles control{48};    // one decision from words on a tile, without the barrier

  friend bool operator==(const Machine&, const Machine&) = default;

  // Returns the multiply-accumulate units of a tile for these types of inputs and sums.
  std::int64_t conv_units(DataType in, DataType sum) const {
    if (in == DataType::Float) return float_float_conv_units;
    return sum == DataType::Half ? half_half_conv_units : half_float_conv_units;
  }

  // Returns the elements of `type` that one data path holds: 2 floats or 4 halves on 64 bits.
  std::int64_t vector_width(DataType type) const { return data_path_bits / (8 * bytes_of(type)); }
};

// Returns the names of the presets: "gc200", "bow", "mk1".
std::vector<std::string> machine_names();

// Returns the preset of a name. Throws Error{InvalidArgument}, which lists the names, if there is
// none.
Machine machine_preset(std::string_view name);

// Reads a machine from JSON text: one object whose keys are the fields of Machine. An optional key
// "base" names a preset that supplies missing keys; `control`, `receive_start` and
// `arrange_bytes_per_cycle` may be missing in any case. Throws
// Error{BadInput}, which names `where`, the key, the value and the legal range, if the text is
// malformed, a key is unknown or given twice, a type is wrong or a value is out of range.
Machine machine_from_json(std::string_view text, std::string_view where);

// Returns the machine as JSON text with all keys, which machine_from_json reads back.
std::string machine_to_json(const Machine& machine);

// Returns the machine of a preset's name or of the path of a JSON file. Throws
// Error{InvalidArgument} for "host" and for a text that is neither a preset nor a file, and
// Error{BadInput} as machine_from_json does.
Machine load_machine(const std::string& name_or_path);

// Checks a machine whose fields were filled in by hand. Throws Error{BadInput}, which names
// `where`, the field, the value and the legal range, if a field is out of range.
void check_machine(const Machine& machine, std::string_view where);

}  // namespace tessera::device
