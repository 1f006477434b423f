#include "tessera/device/pod.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/device/machine_json.hpp"
#include "tessera/json/reader.hpp"

namespace tessera::device {
namespace {

using Json = json::Value;

constexpr std::int64_t kMostDevices = 65536;
constexpr std::int64_t kMostLevels = 8;
constexpr std::size_t kLongestPodName = 100;

// The figures of the second generation's links. README.md lists the sources.
constexpr double kPairRate = 58.4e9, kRingRate = 29.2e9, kGatewayRate = 6.25e9;
constexpr double kLinkStep = 2.4e-6, kGatewayStep = 1e-5;
constexpr double kBarrierHop = 15e-9;
constexpr std::int64_t kPair = 2, kLongestRing = 32, kRack = kPair * kLongestRing;

// A number of a level with its legal range.
struct LevelField {
  const char* key;
  double PodLevel::* member;
  double least, most;
  const char* range;
};

const LevelField kLevelFields[] = {
    {"bytes_per_second", &PodLevel::bytes_per_second, 1, 1e15, "a number in 1..1e15"},
    {"step_seconds", &PodLevel::step_seconds, 0, 1, "a number in 0..1"},
    {"barrier_seconds", &PodLevel::barrier_seconds, 0, 1, "a number in 0..1"},
};

[[noreturn]] void throw_bad_pod(std::string_view where, std::string_view key,
                                std::string_view value, std::string_view legal) {
  throw Error(ErrorCode::BadInput,
              fmt::format("pod {}: {} is {}; it must be {}", where, key, value, legal));
}

// A barrier takes one hop and one more for every four devices, there and back.
PodLevel pair_level() { return {LevelKind::Full, kPair, kPairRate, kLinkStep, 2 * kBarrierHop}; }

PodLevel ring_level(std::int64_t pairs) {
  const double hops = double(kPair * pairs) / 4;
  return {LevelKind::Ring, pairs, kRingRate, kLinkStep, 2 * kBarrierHop * hops};
}

PodLevel switch_level(std::int64_t racks) {
  return {LevelKind::Switch, racks, kGatewayRate, kGatewayStep, 2 * kGatewayStep};
}

Machine read_machine(const json::Value& value, std::string_view where) {
  if (const auto* const name = std::get_if<std::string>(&value.data)) {
    const std::vector<std::string> names = machine_names();
    if (std::find(names.begin(), names.end(), *name) == names.end())
      throw_bad_pod(where, "machine", json::shown(value),
                    fmt::format("an object or one of {}", fmt::join(names, ", ")));
    return machine_preset(*name);
  }
  return machine_from_value(value, fmt::format("of pod {}", where));
}

PodLevel read_level(const json::Value& value, json::Place place) {
  json::ObjectReader fields(value, std::move(place));
  PodLevel level;
  fields("kind", level.kind, json::names_of({LevelKind::Ring, LevelKind::Full, LevelKind::Switch}));
  fields("devices", level.devices, json::WholeRange{1, kMostDevices});
  for (const LevelField& field : kLevelFields) fields(field.key, level.*field.member);
  fields.finish();
  return level;
}

void check_level(const PodLevel& level, const std::string& key, std::string_view where) {
  if (level.devices < 1 || level.devices > kMostDevices)
    throw_bad_pod(where, key + ".devices", fmt::format("{}", level.devices),
                  fmt::format("a whole number in 1..{}", kMostDevices));
  for (const LevelField& field : kLevelFields) {
    const double number = level.*field.member;
    if (!(number >= field.least && number <= field.most))
      throw_bad_pod(where, fmt::format("{}.{}", key, field.key), fmt::format("{}", number),
                    field.range);
  }
}

}  // namespace

std::string_view to_string(LevelKind kind) {
  switch (kind) {
    case LevelKind::Ring:
      return "ring";
    case LevelKind::Full:
      return "full";
    case LevelKind::Switch:
      return "switch";
  }
  return "";
}

std::int64_t Pod::devices() const {
  std::int64_t product = 1;
  for (const PodLevel& level : levels) product *= level.devices;
  return product;
}

double Pod::barrier_seconds() const {
  double sum = 0;
  for (const PodLevel& level : levels) sum += level.barrier_seconds;
  return sum;
}

std::vector<std::string> pod_names() {
  return {"bow-pod4", "bow-pod16", "bow-pod64", "bow-pod256"};
}

Pod pod_preset(std::string_view name) {
  for (const std::int64_t devices : {4, 16, 64, 256})
    if (name == fmt::format("bow-pod{}", devices)) {
      Pod pod = pod_of(machine_preset("bow"), devices);
      pod.name = name;
      return pod;
    }
  throw Error(ErrorCode::InvalidArgument, fmt::format("pod \"{}\" is not known; use one of {}",
                                                      name, fmt::join(pod_names(), ", ")));
}

Pod pod_of(const Machine& machine, std::int64_t devices) {
  const bool small = devices == 1 || (devices >= 2 && devices <= kRack && devices % kPair == 0);
  const bool large = devices > kRack && devices <= kMostDevices && devices % kRack == 0;
  if (!small && !large)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} devices cannot be joined; use 1, an even number up to {}, or a "
                            "multiple of {} up to {}, or describe the pod in a file",
                            devices, kRack, kRack, kMostDevices));
  Pod pod{fmt::format("{}-{}", machine.name.substr(0, kLongestPodName - 8), devices), machine, {}};
  if (devices > 1) pod.levels.push_back(pair_level());
  const std::int64_t pairs = std::min(devices, kRack) / kPair;
  if (pairs > 1) pod.levels.push_back(ring_level(pairs));
  if (large) pod.levels.push_back(switch_level(devices / kRack));
  return pod;
}

Pod pod_from_json(std::string_view text, std::string_view where) {
  const std::string name = fmt::format("pod {}", where);
  const json::Value value = json::parse(text, name);
  json::ObjectReader fields(value, {name, ""});
  Pod pod;
  fields("name", pod.name);
  pod.machine = read_machine(fields.at("machine"), where);
  const json::Place place = fields.place().member("levels");
  const json::List& levels = json::items_of(fields.at("levels"), place);
  for (std::size_t i = 0; i < levels.size(); ++i)
    pod.levels.push_back(read_level(levels[i], place.item(i)));
  fields.finish();
  check_pod(pod, where);
  return pod;
}

std::string pod_to_json(const Pod& pod) {
  Json object;
  object["name"] = pod.name;
  object["machine"] = json::parse_own(machine_to_json(pod.machine));
  object["levels"] = json::List();
  for (const PodLevel& level : pod.levels) {
    Json& fields = object["levels"].push_back();
    fields["kind"] = to_string(level.kind);
    fields["devices"] = level.devices;
    for (const LevelField& field : kLevelFields) fields[field.key] = level.*field.member;
  }
  return object.dump(2) + "\n";
}

Pod load_pod(const std::string& name_or_path) {
  const std::vector<std::string> names = pod_names();
  if (std::find(names.begin(), names.end(), name_or_path) != names.end())
    return pod_preset(name_or_path);
  std::error_code ignored;  // a path whose state cannot be read is no file
  if (!name_or_path.ends_with(".json") && !std::filesystem::exists(name_or_path, ignored))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("pod \"{}\" is neither a preset ({}) nor a JSON file", name_or_path,
                            fmt::join(names, ", ")));
  return pod_from_json(read_file(name_or_path), name_or_path);
}

void check_pod(const Pod& pod, std::string_view where) {
  if (pod.name.empty() || pod.name.size() > kLongestPodName)
    throw_bad_pod(where, "name", fmt::format("{} bytes long", pod.name.size()),
                  "a string of 1..100 bytes");
  check_machine(pod.machine, fmt::format("of pod {}", where));
  if (std::ssize(pod.levels) > kMostLevels)
    throw_bad_pod(where, "levels", fmt::format("a list of {}", pod.levels.size()),
                  fmt::format("a list of at most {} levels", kMostLevels));
  std::int64_t devices = 1;
  for (std::size_t i = 0; i < pod.levels.size(); ++i) {
    check_level(pod.levels[i], fmt::format("levels[{}]", i), where);
    devices *= pod.levels[i].devices;  // at most 65,536 squared
    if (devices > kMostDevices)
      throw_bad_pod(where, "the product of all devices", fmt::format("{}", devices),
                    fmt::format("at most {}", kMostDevices));
  }
}

}  // namespace tessera::device
