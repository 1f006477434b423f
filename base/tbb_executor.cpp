#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

#include "tessera/base/internal/executors.hpp"

namespace tessera::internal {
namespace {

// oneTBB starts its threads inside loops, and the process ends if the system refuses one. Therefore
// an arena asks for no more threads than could be started beforehand, one of which is left to the
// caller, and for no more than oneTBB would start.
int arena_threads(int wanted) {
  const int threads = std::min(wanted, oneapi::tbb::info::default_concurrency());
  return threads > 1 ? std::clamp(startable_threads(threads), 1, threads) : 1;
}

// Each executor has an arena, because oneTBB's global limit is the smallest that anyone asks for.
class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(int threads) : arena_(arena_threads(threads)) {}
  int threads() const override { return arena_.max_concurrency(); }

 protected:
  void run(std::int64_t count, Task task) override {
    if (count <= 1) return run_at_most_one(count, task);
    FirstFailure failure;
    arena_.execute([&] {
      oneapi::tbb::parallel_for(std::int64_t{0}, count, [&](std::int64_t i) {
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
  oneapi::tbb::task_arena arena_;
};

}  // namespace

std::unique_ptr<Executor> make_tbb_executor(int threads) {
  return std::make_unique<TbbExecutor>(threads);
}

}  // namespace tessera::internal
