#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// Raised with every change after which plan() answers some request otherwise: plans that an older
// planner left on disk are then made anew.
inline constexpr std::int64_t kPlannerVersion = 1;

// Requests answered so far, each counted once.
struct PlanCacheCounts {
  std::int64_t from_memory = 0, from_disk = 0, planned = 0;

  friend bool operator==(const PlanCacheCounts&, const PlanCacheCounts&) = default;
};

// Answers of plan() kept under all of its inputs: problem, machine, options and pattern statistics,
// every field of them. In memory, and in a folder too when one is given.
//
// In memory the oldest answers go when keys and answers take more than `memory`.
// In the folder there is one file an answer, "<hash of the key>.plan", with the whole key in it. A
// file that is cut short, changed, of another key or of another version counts as not there and is
// written again. Files appear under their names as a whole, so any number of processes may share
// the folder; nothing is ever deleted from it.
//
// Invariants:
//   1. an answer equals what plan() gives for the key, because plan() is a pure function
//   2. `answers_`, `order_` and `used_` change under the lock held exclusively, and together
//   3. neither planning nor a file is waited for with the lock held
// Any number of threads may use one cache. Two that ask for the same new key at once may both
// plan; they get equal answers.
class PlanCache {
 public:
  static constexpr Bytes kDefaultMemory{64 << 20};

  // An empty `folder`: memory only. The folder is made if it is not there;
  // Error{InvalidArgument} names it when it cannot be.
  explicit PlanCache(std::string folder = {}, Bytes memory = kDefaultMemory);

  // As plan(), errors included; these are not kept. Error{InvalidArgument} also when the answer
  // cannot be written to the folder, with the path and the system's reason.
  // From memory: some tens of microseconds and the length of the statistics.
  PlanResult plan(const Problem& problem, const device::Machine& machine,
                  const Options& options = {}, const PatternStats* stats = nullptr);

  PlanCacheCounts counts() const;

 private:
  using Answer = std::shared_ptr<const PlanResult>;

  Answer find(const std::string& key) const;
  void keep(const std::string& key, Answer answer);

  const std::string folder_;
  const std::int64_t memory_;  // bytes
  mutable std::shared_mutex lock_;
  std::unordered_map<std::string, Answer> answers_;
  std::deque<const std::string*> order_;  // the keys of answers_, oldest first
  std::int64_t used_ = 0;                 // bytes, as size_of counts them
  std::atomic<std::int64_t> from_memory_ = 0, from_disk_ = 0, planned_ = 0;
};

}  // namespace tessera::planner
