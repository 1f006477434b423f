#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "tessera/base/internal/executors.hpp"
#include "tessera/base/process.hpp"

namespace tessera::internal {
namespace {

// Appends `count` threads that run `body`, or fewer if the system refuses one.
template <class Body>
void start_threads(std::vector<std::jthread>& threads, int count, const Body& body) {
  threads.reserve(threads.size() + std::size_t(std::max(count, 0)));
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back(body);
  } catch (const std::system_error&) {  // a limit on threads or memory: those that run are enough
  }
}

// Waits until `over` returns true, but not for long; between looks other threads may run. Loops
// often follow one another within microseconds, and to wake a thread that sleeps takes ten or more.
template <class Over>
void wait_awake(const Over& over) {
  constexpr std::chrono::microseconds kLongest(100);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!over() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// Threads that run loops. They do not exist in a child of fork(), which makes another pool.
// Invariants:
//   1. The caller writes task_, count_ and chunk_ only while no worker is inside a loop, and
//      publishes them through mutex_ together with round_. round_ and inside_ are changed only
//      under mutex_; they are atomic so that threads that wait awake can look at them without it.
//   2. next_ is the first index that no thread has taken; indices are taken in chunks.
//   3. inside_ is the number of workers that are inside the loop. They enter only while open_ is
//      true. When the caller finds no index left it sets open_ to false and waits until inside_ is
//      0: a worker that has not woken up by then has nothing to do and is not waited for.
template <class Task>
class Pool {
 public:
  explicit Pool(int threads) {
    start_threads(workers_, threads - 1, [this](const std::stop_token& stop) { work(stop); });
  }
  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  void run(std::int64_t count, Task task) {
    // Four chunks per thread are enough to balance unequal bodies and few enough to avoid
    // contention on next_.
    const std::int64_t chunk = std::max<std::int64_t>(1, count / (4 * threads()));
    {
      const std::scoped_lock lock(mutex_);
      task_ = task, count_ = count, chunk_ = chunk;
      next_.store(0, std::memory_order_relaxed);
      open_ = true;
      ++round_;
    }
    wake_.notify_all();
    take_chunks();
    std::unique_lock lock(mutex_);
    open_ = false;
    if (inside_ != 0) {
      lock.unlock();
      wait_awake([this] { return inside_ == 0; });
      lock.lock();
    }
    done_.wait(lock, [this] { return inside_ == 0; });
    lock.unlock();
    failure_.rethrow();
  }

 private:
  void work(const std::stop_token& stop) {
    const DefaultFloatMode mode;
    std::int64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [&] { return open_ && round_ != seen; })) {
      seen = round_;
      ++inside_;
      lock.unlock();
      take_chunks();
      lock.lock();
      if (--inside_ == 0) done_.notify_one();
      lock.unlock();
      wait_awake([&] { return round_ != seen || stop.stop_requested(); });
      lock.lock();
    }
  }

  void take_chunks() {
    for (;;) {
      const std::int64_t begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (begin >= count_) return;
      for (std::int64_t i = begin; i < std::min(begin + chunk_, count_); ++i) call(i);
    }
  }

  void call(std::int64_t index) {
    try {
      task_.call(task_.object, index);
    } catch (...) {
      failure_.keep(index);
    }
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  Task task_{};
  std::int64_t count_ = 0, chunk_ = 1;
  std::atomic<std::int64_t> round_ = 0;
  std::atomic<int> inside_ = 0;
  bool open_ = false;
  std::atomic<std::int64_t> next_{0};
  FirstFailure failure_;
  std::vector<std::jthread> workers_;  // last member: joined before the members they use are gone
};

// An executor on std::jthread.
class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(int threads) : threads_(threads) { threads_ = pool().threads(); }
  int threads() const override { return threads_; }

 protected:
  void run(std::int64_t count, Task task) override {
    if (count <= 1) return run_at_most_one(count, task);
    pool().run(count, task);
  }

 private:
  Pool<Task>& pool() {
    return pool_.get([this] { return std::make_unique<Pool<Task>>(threads_); });
  }

  int threads_;
  OfProcess<Pool<Task>> pool_;
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor(int threads) {
  return std::make_unique<ThreadExecutor>(threads);
}

int startable_threads(int wanted) {
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads;
  start_threads(threads, wanted, [&over] { over.wait(false); });
  over = true;
  over.notify_all();
  return static_cast<int>(threads.size());
}

}  // namespace tessera::internal
