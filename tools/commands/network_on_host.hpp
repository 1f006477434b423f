#pragma once

#include <cstdint>
#include <string>

namespace tessera::tools {

// The arguments of `tessera network --machine host`.
struct NetworkOnHost {
  std::string file, html;  // html: path of a page; empty: none
  std::int64_t steps = 1;
  std::uint64_t seed = 1;
  int threads = 0;  // 0: all
  bool json = false;
};

// Runs the network of the file on this computer and prints the measured time of each kind of work
// of each layer, the shortest of all steps, and the losses, and writes the page. Returns the exit
// code.
int print_network_on_host(const NetworkOnHost& arguments);

}  // namespace tessera::tools
