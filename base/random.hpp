#pragma once

#include <cstdint>
#include <random>

namespace tessera {

// Random numbers that are the same on every computer. The generator is std::mt19937_64, whose
// output the standard prescribes; the distributions are our own, because the standard leaves the
// results of its distributions open. Threads must not share an object.
class Random {
 public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}

  // Returns 64 random bits.
  std::uint64_t bits() { return generator_(); }

  // Returns a number uniform in [0, 1), with 53 random bits.
  double unit() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }

  // Returns a number uniform in [0, bound), bound >= 1. The bias is below bound / 2^64.
  std::int64_t below(std::int64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::int64_t>((Wide(generator_()) * Wide(std::uint64_t(bound))) >> 64);
  }

  // Returns +1 or -1 with equal probability.
  float sign() { return (generator_() >> 63) != 0 ? 1.0f : -1.0f; }

 private:
  std::mt19937_64 generator_;
};

}  // namespace tessera
