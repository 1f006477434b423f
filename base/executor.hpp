#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace tessera {

// Runs the indices of a loop on some threads. Both kinds run every index exactly once; which thread
// takes which index is not said, so a body may write only what belongs to its index. The first
// exception of a body (lowest index) is thrown again on the calling thread after all have ended.
// One loop at a time per executor; the calling thread works too. A loop allocates nothing.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual int threads() const = 0;

  // body(i) for i in [0, count).
  template <class Body>
  void for_each(std::int64_t count, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(count, {const_cast<void*>(static_cast<const void*>(&body)),
                [](void* object, std::int64_t i) { (*static_cast<Plain*>(object))(i); }});
  }

 protected:
  // A callable of any type, and how to call it.
  struct Task {
    void* object;
    void (*call)(void* object, std::int64_t index);
  };
  virtual void run(std::int64_t count, Task task) = 0;
};

// What runs the loops: oneTBB, or std::jthread.
enum class ExecutorKind { Tbb, Threads };

// `threads` >= 1, else Error{InvalidArgument}; 0 means: as many as the machine has.
// Tbb where the library was built without oneTBB is Error{InvalidArgument}.
std::unique_ptr<Executor> make_executor(ExecutorKind kind, int threads = 0);
// oneTBB where it was built in, else std::jthread.
std::unique_ptr<Executor> make_executor(int threads = 0);
bool has_executor(ExecutorKind kind);

}  // namespace tessera
