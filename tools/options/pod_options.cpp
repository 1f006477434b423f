#include "tessera/tools/options/pod_options.hpp"

#include <CLI/CLI.hpp>
#include <string>

#include "tessera/tools/internal/choices.hpp"
#include "tessera/tools/options/numbers.hpp"

namespace tessera::tools {

void add_pod_options(CLI::App& app, PodArguments& pod) {
  auto* devices = app.add_option(
      "--devices", pod.devices,
      "number of machines that the layer is cut over, joined as in the pods of the presets: 1, an "
      "even number up to 64, or a multiple of 64");
  require_whole(devices, 1, kMostDevices)->default_str("no pod");
  auto* file = app.add_option("--pod", pod.pod,
                              "pod that the layer is cut over: bow-pod4, bow-pod16, bow-pod64, "
                              "bow-pod256 or FILE.json with its machine and links")
                   ->type_name("POD")
                   ->excludes(devices)
                   ->excludes("--machine")
                   ->excludes("--tiles-per-ipu");
  offer_values(file, device::pod_names());
}

void check_pod_options(const CLI::App& app, const LayerArguments& a, const PodArguments& pod,
                       std::initializer_list<const char*> options) {
  if (!pod.is_used()) return;
  if (is_host(a))
    throw CLI::ValidationError("--devices", "takes a modelled machine, and --machine is host");
  if (a.chooses_block)
    throw CLI::ValidationError("--block-size", "auto is for one device; give the block of a pod");
  for (const char* option : options)
    if (app.count(option) > 0)
      throw CLI::ValidationError(option, "is for one device; leave out --devices and --pod");
}

}  // namespace tessera::tools
