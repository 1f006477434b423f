#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device/machine.hpp"

namespace tessera::device {

// The links between the devices of one level of a pod.
enum class LevelKind {
  Ring,   // each device has links to the next and to the previous one; others are reached in hops
  Full,   // each device has a link to every other one and divides its rate evenly between them
  Switch  // each device has one link to a switch, which connects any pairs at the same time
};

// Returns "ring", "full" or "switch"; the text is valid as long as the program.
std::string_view to_string(LevelKind kind);

// The links of one level of a pod. Each device has links of its own on every level.
struct PodLevel {
  LevelKind kind = LevelKind::Ring;
  std::int64_t devices = 1;     // on this level, or groups of devices of the levels before it
  double bytes_per_second = 0;  // that a device sends in one direction; on a ring, to each side
  double step_seconds = 0;      // one step of a collective before its first byte
  double barrier_seconds = 0;   // one barrier over this level

  friend bool operator==(const PodLevel&, const PodLevel&) = default;
};

// Several devices of one kind and the links between them. A plain value. Device d has the position
// d % levels[0].devices on the first level, (d / levels[0].devices) % levels[1].devices on the
// second, and so on. device/README.md has the legal ranges and the sources of the figures.
struct Pod {
  std::string name;
  Machine machine;               // every device is one of these
  std::vector<PodLevel> levels;  // from the inside out; none: one device

  friend bool operator==(const Pod&, const Pod&) = default;

  // Returns the number of devices, the product over the levels.
  std::int64_t devices() const;

  // Returns the seconds of one barrier over all devices, the sum over the levels.
  double barrier_seconds() const;
};

// Returns the names of the presets: "bow-pod4", "bow-pod16", "bow-pod64", "bow-pod256".
std::vector<std::string> pod_names();

// Returns the preset of a name. Throws Error{InvalidArgument}, which lists the names, if there is
// none.
Pod pod_preset(std::string_view name);

// Returns that many devices, joined as those of the presets: in pairs, the pairs in rings of at
// most 32, the rings by a switch. Throws Error{InvalidArgument}, which names the legal counts, if
// the count is not 1, 2, an even number up to 64 or a multiple of 64 up to 65,536.
Pod pod_of(const Machine& machine, std::int64_t devices);

// Reads a pod from JSON text: {"name": "two", "machine": {"base": "bow"}, "levels": [{"kind":
// "ring", "devices": 2, "bytes_per_second": 58.4e9, "step_seconds": 2.4e-6, "barrier_seconds":
// 3e-8}]}. The machine is the name of a preset or an object as in a machine file. Throws
// Error{BadInput} as machine_from_json does.
Pod pod_from_json(std::string_view text, std::string_view where);

// Returns the pod as JSON text with all keys, which pod_from_json reads back.
std::string pod_to_json(const Pod& pod);

// Returns the pod of a preset's name or of the path of a JSON file. Throws Error{InvalidArgument}
// for a text that is neither, and Error{BadInput} as pod_from_json does.
Pod load_pod(const std::string& name_or_path);

// Checks a pod whose fields were filled in by hand. Throws Error{BadInput}, which names `where`,
// the field, the value and the legal range, if a field is out of range.
void check_pod(const Pod& pod, std::string_view where);

}  // namespace tessera::device
