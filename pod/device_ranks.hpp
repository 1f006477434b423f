#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace tessera::pod {

// The processes, or threads, that run the devices of one layer together. Each runs some of the
// devices and tells the others what they have computed, so all have the results, ledgers and
// checksums of one process. All of them make the same calls of the layer in the same order, with
// the same arguments.
struct DeviceRanks {
  int rank = 0, size = 1;  // this one's number, and how many there are

  // Returns the bytes that each of them gave to this call, by number. Unused if there is only one.
  // `what` says for people what travels.
  std::function<std::vector<std::vector<std::byte>>(std::string_view what,
                                                    const std::vector<std::byte>& own)>
      gather = {};
};

}  // namespace tessera::pod
