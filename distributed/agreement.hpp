#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/sparse/checked.hpp"

namespace tessera::distributed {

// A number of 64 bits that summarises what a rank was given or sends. Other digests say that other
// things were given; equal ones that they are the same, except with a chance of about 2^-64. One
// changed word is always seen.
class Digest {
 public:
  // Adds numbers by their bits: 0 and -0 differ.
  template <class T>
  Digest& add(std::span<const T> numbers) {
    static_assert(std::is_floating_point_v<T> || std::has_unique_object_representations_v<T>);
    add_word(numbers.size());
    add_bytes(std::as_bytes(numbers));
    return *this;
  }
  Digest& add(std::int64_t number) { return add(std::span<const std::int64_t>(&number, 1)); }

  std::uint64_t value() const { return value_; }

 private:
  void add_word(std::uint64_t word);
  void add_bytes(std::span<const std::byte> bytes);

  std::uint64_t value_ = 0x9e3779b97f4a7c15;
};

// Something that all ranks must have been given alike.
struct Given {
  std::string_view name;     // for messages, for example "problem"
  std::uint64_t digest = 0;  // of all of it
  std::string text = {};     // says for people what it is; may be empty
};

// Return what a rank was given. Matrices are compared value by value, all else by a text that has
// every field, and the caches of computers without their cores.
Given given_text(std::string_view name, std::string text);
Given given_problem(const Problem& problem);
Given given_caches(const host::HostCpu& cpu);
Given given_weights(std::span<const sparse::CheckedCsr<float>> weights);

// Throws Error{InvalidArgument} on every rank unless all ranks were given the same. The message
// names the ranks whose first difference from the first rank is the earliest of the list, and both
// texts. Collective; every rank passes a list of the same length. O(ranks) numbers travel to each
// rank.
void require_same(Communicator& ranks, std::string_view call, const std::vector<Given>& given);

}  // namespace tessera::distributed
