#pragma once

#include <algorithm>
#include <vector>

namespace tessera {

// Leaves one of each of the entries of a list, in ascending order.
template <class T>
void keep_distinct(std::vector<T>& entries) {
  std::ranges::sort(entries);
  const auto repeated = std::ranges::unique(entries);
  entries.erase(repeated.begin(), repeated.end());
}

}  // namespace tessera
