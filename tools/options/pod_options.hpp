#pragma once

#include <initializer_list>

#include "tessera/tools/options/pod_arguments.hpp"

namespace CLI {
class App;
}

namespace tessera::tools {

// The most devices of a pod.
inline constexpr std::int64_t kMostDevices = 65536;

// Adds --devices and --pod, after the options of the machine.
void add_pod_options(CLI::App& app, PodArguments& pod);

// With --devices or --pod, throws CLI::ValidationError if the command line gives one of `options`,
// which have no meaning there, asks for the cheapest block or names this computer.
void check_pod_options(const CLI::App& app, const LayerArguments& arguments,
                       const PodArguments& pod, std::initializer_list<const char*> options);

}  // namespace tessera::tools
