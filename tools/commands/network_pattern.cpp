#include "tessera/tools/commands/network_pattern.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/tools/commands/pattern_update.hpp"

namespace tessera::tools {

NetworkPatternUpdate::NetworkPatternUpdate(const runtime::Network& network,
                                           const device::HostLink& of_machine, double on_host)
    : upload(network.pattern_bytes() + network.state_bytes()),
      download(network.value_bytes() + network.state_bytes()),
      link(of_machine),
      host_seconds(on_host) {}

double NetworkPatternUpdate::seconds() const {
  return link.transfer_seconds(upload) + link.transfer_seconds(download) + host_seconds;
}

std::int64_t NetworkPatternUpdate::steps_between(double step_seconds) const {
  return steps_for_share(seconds(), step_seconds, kShareOfRewires);
}

std::string NetworkPatternUpdate::to_text(double step_seconds, const std::string& machine) const {
  return fmt::format(
      "patterns   new ones for all layers: {} bytes to {} ({:.3f} ms) and {} from\n"
      "           there ({:.3f} ms) at {:.3g} GB/s, {:.3f} ms on this computer (measured);\n"
      "           they cost less than {:.0f} % of the time with {} steps or more from\n"
      "           one to the next\n",
      upload.value, machine, 1e3 * link.transfer_seconds(upload), download.value,
      1e3 * link.transfer_seconds(download), link.bytes_per_second * 1e-9, 1e3 * host_seconds,
      100 * kShareOfRewires, steps_between(step_seconds));
}

std::string NetworkPatternUpdate::to_json(double step_seconds) const {
  const nlohmann::ordered_json json{{"upload_bytes", upload.value},
                                    {"download_bytes", download.value},
                                    {"upload_seconds", link.transfer_seconds(upload)},
                                    {"download_seconds", link.transfer_seconds(download)},
                                    {"host_seconds", host_seconds},
                                    {"steps_for_5_percent", steps_between(step_seconds)}};
  return json.dump();
}

}  // namespace tessera::tools
