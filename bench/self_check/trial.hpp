#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/tessera.hpp"

namespace tessera::bench {

// A layer of the tables: its problem and the tiles of its machine.
struct CheckedLayer {
  std::string name;
  Problem problem;
  std::int64_t tiles = 12;
};

// Returns one layer of every type, kind of block and type of sums.
std::vector<CheckedLayer> checked_layers();

// The flips that struck one buffer.
struct Tally {
  std::int64_t struck = 0;
  std::int64_t refused = 0;  // damaged words that a kernel refused to walk
  std::int64_t beyond = 0;   // flips that put a result beyond its own bound
  std::int64_t seen = 0;     // of these: the self-check failed
  std::int64_t alarms = 0;   // the self-check failed although every result is within its bound

  Tally& operator+=(const Tally& other);
};

// A layer with random weights and operands of real values, and its passes.
class CheckTrial {
 public:
  CheckTrial(const CheckedLayer& layer, device::ExchangeMode mode, std::uint64_t seed,
             Executor& executor);
  ~CheckTrial();

  // Runs a pass with one flipped bit and adds the outcome to the buffer that it struck.
  void flip(Pass pass, Random& random, std::map<std::string, Tally>& by_buffer);

  // Runs all passes without a fault. Returns the number of failed self-checks.
  std::int64_t clean_alarms();

  // Runs a pass, with a self-check or without.
  void run(Pass pass, bool is_checked);

 private:
  template <class T>
  class Typed;
  class Any;
  std::unique_ptr<Any> any_;
};

// Runs all passes of a layer on this computer `times` times without a fault, with random weights
// and operands. Returns the number of failed self-checks.
std::int64_t host_alarms(const Problem& problem, int times, std::uint64_t seed, Executor& executor);

}  // namespace tessera::bench
