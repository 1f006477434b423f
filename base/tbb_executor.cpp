#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "tessera/base/internal/executors.hpp"

namespace tessera::internal {
namespace {

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(int threads)
      : allowed_(oneapi::tbb::global_control::max_allowed_parallelism, std::size_t(threads)),
        arena_(threads) {}
  int threads() const override { return arena_.max_concurrency(); }

 protected:
  void run(std::int64_t count, Task task) override {
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
  oneapi::tbb::global_control allowed_;  // some tests ask for more threads than cores
  oneapi::tbb::task_arena arena_;
};

}  // namespace

std::unique_ptr<Executor> make_tbb_executor(int threads) {
  return std::make_unique<TbbExecutor>(threads);
}

}  // namespace tessera::internal
