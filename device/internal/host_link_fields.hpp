#pragma once

#include "tessera/device/host_link.hpp"
#include "tessera/json/reader.hpp"

namespace tessera::device::internal {

// Reads and checks the keys of the link in the object of a machine.
HostLink read_host_link(json::ObjectReader& fields);

}  // namespace tessera::device::internal
