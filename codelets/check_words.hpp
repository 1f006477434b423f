#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/codelets/kernel.hpp"

namespace tessera::codelets {

// What a bucket's words and values may use.
struct BucketRoom {
  std::int64_t words = 0, values = 0;
};

// The first thing about a bucket's words that cannot be.
struct WordsFault {
  std::int64_t word = 0;  // where, about
  std::string_view what;
};

// Kernels and visit_cycles() trust the words they walk. This walk does not: what it passes, a
// kernel of this key with these arguments (and the cost of its visit) can walk without leaving the
// room, the operands or the result. It does not say that the words are those an encoder wrote: a
// row that became another one inside the cell passes. For words that may have been damaged.
// O(words); allocates nothing; thread-safe.
std::optional<WordsFault> check_words(const KernelKey& key, const KernelArgs& args,
                                      const BucketRoom& room);

}  // namespace tessera::codelets
