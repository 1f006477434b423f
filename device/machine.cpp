#include "tessera/device/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <variant>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/device/internal/host_link_fields.hpp"
#include "tessera/device/machine_json.hpp"
#include "tessera/json/reader.hpp"

namespace tessera::device {
namespace {

using Json = json::Value;
using Member = std::variant<std::int64_t Machine::*, Bytes Machine::*, Cycles Machine::*>;

// A field with a whole number. The legal values are the multiples of `step` in least..most.
struct Field {
  const char* key;
  Member member;
  std::int64_t least, most, step;
  bool optional = false;  // may be missing: Machine's default is then used
};

// The upper limits ensure that tiles * tile_memory, and every product of two other fields, fits
// 64 bits.
const Field kFields[] = {
    {"tiles", &Machine::tiles, 1, 1 << 20, 1},
    {"tile_memory", &Machine::tile_memory, 1024, std::int64_t{1} << 40, 1},
    {"workers", &Machine::workers, 1, 1024, 1},
    {"exchange_bytes_per_cycle", &Machine::exchange_bytes_per_cycle, 1, 1 << 20, 1},
    {"tiles_per_exchange_bus", &Machine::tiles_per_exchange_bus, 1, 1024, 1},
    {"data_path_bits", &Machine::data_path_bits, 32, 1 << 16, 32},  // a float must fit
    {"half_half_conv_units", &Machine::half_half_conv_units, 0, 1 << 16, 1},
    {"half_float_conv_units", &Machine::half_float_conv_units, 0, 1 << 16, 1},
    {"float_float_conv_units", &Machine::float_float_conv_units, 0, 1 << 16, 1},
    {"word_bits", &Machine::word_bits, 16, 32, 16},
    {"arrange_bytes_per_cycle", &Machine::arrange_bytes_per_cycle, 1, 1 << 20, 1, true},
    {"receive_start", &Machine::receive_start, 0, 1'000'000'000, 1, true},
    {"sync", &Machine::sync, 0, 1'000'000'000, 1},
    {"launch", &Machine::launch, 0, 1'000'000'000, 1},
    {"control", &Machine::control, 0, 1'000'000'000, 1, true},
};
constexpr double kLeastClock = 1, kMostClock = 1e12;
constexpr const char* kClockRange = "a number in 1..1e12 (hertz)";
constexpr std::size_t kLongestName = 100;
constexpr const char* kNameRange = "a string of 1..100 bytes";

std::int64_t& number(Machine& machine, const Field& field) {
  if (const auto* bytes = std::get_if<Bytes Machine::*>(&field.member))
    return (machine.*(*bytes)).value;
  if (const auto* cycles = std::get_if<Cycles Machine::*>(&field.member))
    return (machine.*(*cycles)).value;
  return machine.*std::get<std::int64_t Machine::*>(field.member);
}

std::string range_of(const Field& f) {
  if (f.step == 1) return fmt::format("a whole number in {}..{}", f.least, f.most);
  return fmt::format("a multiple of {} in {}..{}", f.step, f.least, f.most);
}

std::string preset_list() { return fmt::format("{}", fmt::join(machine_names(), ", ")); }

[[noreturn]] void throw_bad(std::string_view where, std::string_view key, std::string_view value,
                            std::string_view legal) {
  throw Error(ErrorCode::BadInput,
              fmt::format("machine {}: {} is {}; it must be {}", where, key, value, legal));
}

// The second generation. README.md lists the sources of the figures.
Machine mk2(std::string name, double clock_hz) {
  Machine m;
  m.name = std::move(name);
  m.tiles = 1472;
  m.tile_memory = Bytes(624 * 1024);
  m.clock_hz = clock_hz;
  m.workers = 6;
  m.exchange_bytes_per_cycle = 4;
  m.tiles_per_exchange_bus = 2;
  m.data_path_bits = 64;
  m.half_half_conv_units = 16;
  m.half_float_conv_units = 8;
  m.float_float_conv_units = 8;
  m.arrange_bytes_per_cycle = 1;
  m.receive_start = Cycles(0);
  m.sync = Cycles(400);
  m.launch = Cycles(11);
  return m;
}

Machine mk1() {
  Machine m = mk2("mk1", 1.6e9);
  m.tiles = 1216;
  m.tile_memory = Bytes(256 * 1024);
  m.tiles_per_exchange_bus = 1;
  m.half_half_conv_units = 8;
  m.float_float_conv_units = 4;
  return m;
}

Machine base_of(json::ObjectReader& fields) {
  std::optional<std::string> base;
  fields("base", base);
  if (!base) return {};
  const std::vector<std::string> names = machine_names();
  if (std::find(names.begin(), names.end(), *base) == names.end())
    json::throw_bad(fields.place().member("base"), json::Value{*base},
                    "one of the presets " + preset_list());
  return machine_preset(*base);
}

// Reads the value of a key, unless the base or a default supplies it.
template <class T, class... Legal>
void read_or_inherit(json::ObjectReader& fields, const char* key, T& result, std::string_view range,
                     const Legal&... legal) {
  const json::Value* const value = fields.find(key);
  const json::Place place = fields.place().member(key);
  if (value != nullptr) return json::read(*value, place, result, legal...);
  if (!fields.has("base"))
    json::throw_bad(place, "missing",
                    fmt::format("{}, or inherited from a \"base\" ({})", range, preset_list()));
}

void read_field(json::ObjectReader& fields, const Field& field, Machine& machine) {
  std::int64_t& value = number(machine, field);
  if (field.optional && fields.find(field.key) == nullptr) return;
  read_or_inherit(fields, field.key, value, range_of(field),
                  json::WholeRange{field.least, field.most});
}

std::string read_machine_file(const std::string& path) {
  try {
    return read_file(path);
  } catch (const Error& error) {
    throw Error(ErrorCode::BadInput, fmt::format("machine file {}; give a JSON file or one of {}",
                                                 error.what(), preset_list()));
  }
}

}  // namespace

std::vector<std::string> machine_names() { return {"gc200", "bow", "mk1"}; }

Machine machine_preset(std::string_view name) {
  if (name == "gc200") return mk2("gc200", 1.325e9);
  if (name == "bow") return mk2("bow", 1.85e9);
  if (name == "mk1") return mk1();
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("machine \"{}\" is not known; use one of {}", name, preset_list()));
}

Machine machine_from_json(std::string_view text, std::string_view where) {
  return machine_from_value(json::parse(text, fmt::format("machine {}", where)), where);
}

Machine machine_from_value(const json::Value& value, std::string_view where) {
  const std::string name = fmt::format("machine {}", where);
  json::ObjectReader fields(value, {name, ""});
  Machine machine = base_of(fields);
  read_or_inherit(fields, "name", machine.name, kNameRange);
  read_or_inherit(fields, "clock_hz", machine.clock_hz, kClockRange);
  for (const Field& field : kFields) read_field(fields, field, machine);
  internal::read_host_link(fields);  // of the same file, but no part of the machine
  fields.finish();
  check_machine(machine, where);
  return machine;
}

std::string machine_to_json(const Machine& machine) {
  Json object;
  object["name"] = machine.name;
  object["clock_hz"] = machine.clock_hz;
  Machine copy = machine;
  for (const Field& field : kFields) object[field.key] = number(copy, field);
  return object.dump(2) + "\n";
}

Machine load_machine(const std::string& name_or_path) {
  const std::vector<std::string> names = machine_names();
  if (std::find(names.begin(), names.end(), name_or_path) != names.end())
    return machine_preset(name_or_path);
  if (name_or_path == kHostMachine)
    throw Error(ErrorCode::InvalidArgument,
                "machine \"host\" is this computer, which has no tiles; layers can be planned, run "
                "and measured on it, but nothing that needs tiles");
  std::error_code ignored;  // a path whose state cannot be read is no file
  const bool is_path =
      name_or_path.ends_with(".json") || std::filesystem::exists(name_or_path, ignored);
  if (is_path) return machine_from_json(read_machine_file(name_or_path), name_or_path);
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("machine \"{}\" is neither a preset ({}) nor a JSON file", name_or_path,
                          preset_list()));
}

void check_machine(const Machine& machine, std::string_view where) {
  if (machine.name.empty() || machine.name.size() > kLongestName)
    throw_bad(where, "name", fmt::format("{} bytes long", machine.name.size()), kNameRange);
  // The condition is negated as a whole so that it also refuses a NaN.
  if (!(machine.clock_hz >= kLeastClock && machine.clock_hz <= kMostClock))
    throw_bad(where, "clock_hz", fmt::format("{}", machine.clock_hz), kClockRange);
  Machine copy = machine;
  for (const Field& field : kFields) {
    const std::int64_t value = number(copy, field);
    if (value < field.least || value > field.most || value % field.step != 0)
      throw_bad(where, field.key, fmt::format("{}", value), range_of(field));
  }
}

}  // namespace tessera::device
