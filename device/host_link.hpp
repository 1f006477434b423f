#pragma once

#include <string>
#include <string_view>

#include "tessera/base/units.hpp"
#include "tessera/device/machine.hpp"

namespace tessera::device {

// The link between a machine and its host, in each direction. Passes begin with their operands on
// the machine and do not use it, so it is no part of Machine: plans do not depend on it. It is
// stored in the same file as the machine. device/README.md has the sources of the figures.
struct HostLink {
  double bytes_per_second = 20e9;  // 1 .. 1e15
  double latency_seconds = 1e-5;   // 0 .. 1, before the first byte of a transfer arrives

  friend bool operator==(const HostLink&, const HostLink&) = default;

  // Returns the seconds of one transfer of so many bytes; 0 without bytes.
  double transfer_seconds(Bytes bytes) const {
    return bytes.value == 0 ? 0 : latency_seconds + double(bytes.value) / bytes_per_second;
  }
};

// Reads the link from the JSON text of a machine: the keys `host_bytes_per_second` and
// `host_latency_seconds`. Each may be missing and then has the value above. Throws Error{BadInput}
// as machine_from_json does, for any key of the machine.
HostLink host_link_from_json(std::string_view text, std::string_view where);

// Returns the machine and its link as JSON text with all keys, which machine_from_json and
// host_link_from_json read back.
std::string machine_to_json(const Machine& machine, const HostLink& link);

// Returns the link of a preset's name or of the path of a JSON file. All presets have the values
// above. Throws the errors of load_machine.
HostLink load_host_link(const std::string& name_or_path);

}  // namespace tessera::device
