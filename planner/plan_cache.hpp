#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "tessera/base/process.hpp"
#include "tessera/planner/planner.hpp"

namespace tessera::planner {

// The version of the planner in the keys of stored plans. It is raised with every change after
// which plan() answers some request differently, so that plans which an older planner stored on
// disk are not used.
inline constexpr std::int64_t kPlannerVersion = 7;

// The number of requests answered so far, by the source of the answer.
struct PlanCacheCounts {
  std::int64_t from_memory = 0, from_disk = 0, planned = 0;

  friend bool operator==(const PlanCacheCounts&, const PlanCacheCounts&) = default;
};

// A cache of the answers of plan(). The key of an answer is every field of the problem, the
// machine, the options and the pattern statistics. Answers are kept in memory and, if a folder is
// given, also in files.
//
// In memory, the oldest answers are dropped if keys and answers take more than `memory` bytes. In
// the folder, every answer is one file "<hash of the key>.plan" that contains the whole key. A file
// that is truncated, altered, of another key or of another version is ignored and written again.
// Files appear under their names only when they are complete, so any number of processes may share
// the folder. Nothing is ever deleted from it.
//
// Any number of threads may use one cache. Two threads that ask for the same new key at the same
// time may both plan; they get equal answers.
//
// Invariants:
//   1. An answer equals the result of plan() for the key, because plan() is a pure function.
//   2. The members of Memory change together, while its lock is held exclusively.
//   3. No thread plans or waits for a file while it holds the lock.
class PlanCache {
 public:
  static constexpr Bytes kDefaultMemory{64 << 20};

  // Creates a cache with answers in memory and, unless `folder` is empty, in that folder. Creates
  // the folder if it does not exist. Throws Error{InvalidArgument} that names it if that fails.
  explicit PlanCache(std::string folder = {}, Bytes memory = kDefaultMemory);

  // Returns the answer of planner::plan() to the request and throws the same errors; errors are not
  // kept. An answer that cannot be written to the folder is returned all the same, and
  // store_failure() then has the reason. An answer from memory costs some tens of microseconds plus
  // time linear in the length of the statistics.
  PlanResult plan(const Problem& problem, const device::Machine& machine,
                  const Options& options = {}, const PatternStats* stats = nullptr);

  // Returns the number of answers so far, by source.
  PlanCacheCounts counts() const;

  // Returns why an answer could not be written to the folder, with the path; empty if all were
  // written. The first reason is kept.
  std::string store_failure() const;

 private:
  using Answer = std::shared_ptr<const PlanResult>;

  Answer find(const std::string& key) const;
  void keep(const std::string& key, Answer answer);
  void store(const std::string& key, const PlanResult& answer);

  const std::string folder_;
  const std::int64_t memory_;  // capacity, bytes
  // The answers in memory. A child of fork() begins without any: another thread of the parent may
  // have been changing them.
  struct Memory {
    std::shared_mutex lock;  // of everything below
    std::unordered_map<std::string, Answer> answers;
    std::deque<const std::string*> order;  // the keys of answers, oldest first
    std::int64_t used = 0;                 // bytes, by the estimate of size_of()
    std::string store_failure;
  };
  mutable OfProcess<Memory> memory_of_process_;
  std::atomic<std::int64_t> from_memory_ = 0, from_disk_ = 0, planned_ = 0;
};

}  // namespace tessera::planner
