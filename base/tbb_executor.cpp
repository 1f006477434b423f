#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <memory>

#include "tessera/base/internal/executors.hpp"
#include "tessera/base/process.hpp"

namespace tessera::internal {
namespace {

// oneTBB starts its threads inside loops, and the process ends if the system refuses one. Therefore
// an arena asks for no more threads than could be started beforehand, one of which is left to the
// caller, and for no more than oneTBB would start.
int arena_threads(int wanted) {
  const int threads = std::min(wanted, oneapi::tbb::info::default_concurrency());
  return threads > 1 ? std::clamp(startable_threads(threads), 1, threads) : 1;
}

// Each executor has an arena, because oneTBB's global limit is the smallest that anyone asks for. A
// child of fork() has neither oneTBB's threads nor a way to start them again, so its loops run on
// an executor of std::jthread instead.
class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(int threads)
      : process_(process_number()),
        arena_(std::make_unique<oneapi::tbb::task_arena>(arena_threads(threads))),
        threads_(arena_->max_concurrency()) {}
  ~TbbExecutor() override {
    // To destroy the parent's arena would wait for locks of oneTBB that nobody holds any more.
    if (is_of_parent()) static_cast<void>(arena_.release());
  }
  int threads() const override { return threads_; }

 protected:
  void run(std::int64_t count, Task task) override {
    if (count <= 1) return run_at_most_one(count, task);
    if (is_of_parent()) return run_in_child(count, task);
    FirstFailure failure;
    arena_->execute([&] {
      oneapi::tbb::parallel_for(std::int64_t{0}, count, [&](std::int64_t i) {
        const DefaultFloatMode mode;
        try {
          task.call(task.object, i);
        } catch (...) {
          failure.keep(i);
        }
      });
    });
    failure.rethrow();
  }

 private:
  bool is_of_parent() const { return process_ != process_number(); }

  void run_in_child(std::int64_t count, Task task) {
    Executor& instead = in_child_.get([this] { return make_thread_executor(threads_); });
    instead.for_each(count, [&](std::int64_t i) { task.call(task.object, i); });
  }

  std::uint32_t process_;
  std::unique_ptr<oneapi::tbb::task_arena> arena_;
  int threads_;
  OfProcess<Executor> in_child_;
};

}  // namespace

std::unique_ptr<Executor> make_tbb_executor(int threads) {
  return std::make_unique<TbbExecutor>(threads);
}

}  // namespace tessera::internal
