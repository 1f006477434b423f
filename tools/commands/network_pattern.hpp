#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/units.hpp"
#include "tessera/device/host_link.hpp"
#include "tessera/runtime/network.hpp"

namespace tessera::tools {

// The cost of new patterns for all layers of a network on a modelled machine. The host reads values
// and states of the optimiser, encodes the new patterns, and sends words, values, states and
// tables. Bytes are counted, the seconds of transfers modelled by the link, and those of the host
// measured.
struct NetworkPatternUpdate {
  Bytes upload, download;
  device::HostLink link;
  double host_seconds = 0;

  // `host_seconds` is the time in which this computer encoded the weights of all layers.
  NetworkPatternUpdate(const runtime::Network& network, const device::HostLink& link,
                       double host_seconds);

  double seconds() const;

  // Returns the least number of steps from one update to the next with which updates take less than
  // 5 % of the time.
  std::int64_t steps_between(double step_seconds) const;

  // Return a line for people, and an object of JSON.
  std::string to_text(double step_seconds, const std::string& machine) const;
  std::string to_json(double step_seconds) const;
};

}  // namespace tessera::tools
