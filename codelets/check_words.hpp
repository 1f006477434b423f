#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/codelets/kernel.hpp"

namespace tessera::codelets {

// The sizes of the memory that the words and values of a bucket may use.
struct BucketCapacity {
  std::int64_t words = 0, values = 0;
};

// The first fault found in the words of a bucket.
struct WordsFault {
  std::int64_t word = 0;  // approximate position
  std::string_view what;
};

// Checks words that may have been damaged. Kernels and visit_cycles() trust the words they read;
// this function does not. If it finds no fault, a kernel of this key with these arguments (and the
// cost of its visit) can read the words without leaving `capacity`, the operands or the result. It
// does not prove that an encoder wrote the words: a row number that became another row of the cell
// is accepted. Returns nothing if there is no fault. O(words); allocates nothing; thread-safe.
std::optional<WordsFault> check_words(const KernelKey& key, const KernelArgs& args,
                                      const BucketCapacity& capacity);

}  // namespace tessera::codelets
