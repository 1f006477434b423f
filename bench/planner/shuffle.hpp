#pragma once

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"

namespace tessera::bench {

// Shuffles so that every order is equally likely and the same on every computer; std::shuffle does
// not promise the second.
template <class T>
void shuffle(std::vector<T>& items, Random& random) {
  for (auto left = std::ssize(items); left > 1; --left)
    std::swap(items[std::size_t(left - 1)], items[std::size_t(random.below(left))]);
}

}  // namespace tessera::bench
