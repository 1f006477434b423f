#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "tessera/base/executor.hpp"

namespace tessera::internal {

std::unique_ptr<Executor> make_thread_executor(int threads);
std::unique_ptr<Executor> make_tbb_executor(int threads);

// Starts up to `wanted` threads, ends them, and returns the number that the system started.
int startable_threads(int wanted);

// Keeps the exception of the lowest index, so that the exception that a caller sees does not depend
// on the number of threads. Any thread may call keep.
class FirstFailure {
 public:
  void keep(std::int64_t index) noexcept {
    const std::scoped_lock lock(mutex_);
    if (failure_ && index_ <= index) return;
    index_ = index;
    failure_ = std::current_exception();
  }

  // Throws the kept exception again, if there is one. Must be called after all bodies have ended.
  void rethrow() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  std::mutex mutex_;
  std::int64_t index_ = 0;
  std::exception_ptr failure_;
};

// Runs a loop of no index or one on the calling thread: waking others would only take time.
template <class Task>
void run_at_most_one(std::int64_t count, const Task& task) {
  if (count == 1) task.call(task.object, 0);
}

}  // namespace tessera::internal
