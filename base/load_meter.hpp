#pragma once

#include <cstdint>

namespace tessera {

// Observes the load of this computer from the moment when it is made.
class LoadMeter {
 public:
  LoadMeter();

  // Returns the processor time of this process as a share of that of `threads` threads.
  double busy(int threads) const;

  // Returns the programs that wanted to run in the last minute, on average; 0 if the system does
  // not say.
  static double load();

  // Returns the cores that this process may use, which a launcher may have bound it to.
  static std::int64_t cores_of_process();

  // Returns the most bytes of memory that this process has had.
  static std::int64_t peak_bytes();

  // Returns the share of the time that a hypervisor gave to others.
  double stolen() const;

 private:
  double wall_ = 0, processor_ = 0, stolen_ = 0, all_ = 0;
};

}  // namespace tessera
