#pragma once

#include <array>
#include <span>
#include <vector>

#include "tessera/codelets/check_words.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/codelets/visit_cost.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime::internal {

codelets::KernelKey kernel_key(const PassSpec& spec);
bool is_block(codelets::Method method);

// Throws Error{CheckFailed} with the tile, the word and the reason if the words of a bucket of this
// capacity would lead its kernel out of bounds.
void check_bucket_words(const PassSpec& spec, TileId tile, const codelets::KernelArgs& args,
                        const codelets::BucketCapacity& capacity);

// Runs the kernel on one bucket of a tile; `capacity` is the capacity of the bucket. If a fault was
// injected into the machine, the words are checked first.
struct CheckedKernel {
  const device::Engine& engine;
  const PassSpec& spec;
  codelets::Kernel kernel;

  void operator()(TileId tile, const codelets::KernelArgs& args,
                  const codelets::BucketCapacity& capacity) const {
    if (engine.is_faulty()) check_bucket_words(spec, tile, args, capacity);
    kernel(args);
  }
};

// Returns rows of bytes as an operand of [rows][z] elements of `bytes_per_element` bytes.
codelets::Operand operand(device::ByteRows rows, std::int64_t bytes_per_element);

// The words of the buckets that a step visits on a tile. Allocates only for more than 64 buckets.
class VisitedWords {
 public:
  explicit VisitedWords(std::size_t count) {
    if (count > few_.size()) many_.reserve(count);
  }
  void add(const void* words) {
    if (many_.capacity() > 0)
      many_.push_back(words);
    else
      few_[count_++] = words;
  }
  std::span<const void* const> all() const {
    return many_.empty() ? std::span<const void* const>(few_.data(), count_) : many_;
  }

 private:
  std::array<const void*, 64> few_;
  std::size_t count_ = 0;
  std::vector<const void*> many_;
};

// Returns the cycles of a step over these buckets on a tile: the kernel's formula, with the counts
// of the real words.
Cycles visit_cycles(const PassSpec& spec, const device::Machine& machine,
                    std::span<const void* const> buckets, std::int64_t sub_group);

// Returns the cost by which EncodeOptions::even_load evens the load of a pass: its kernel, and a
// step of propagation with its exchange, barrier, launch and share of a question.
partitioner::LoadCost load_cost(const PassSpec& spec, const device::Machine& machine);

}  // namespace tessera::runtime::internal
