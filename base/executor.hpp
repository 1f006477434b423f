#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "tessera/base/float_mode.hpp"

namespace tessera {

// The most threads that an executor may be asked for. A computer with more cores than these has
// several executors.
inline constexpr int kMostThreads = 1024;

// Runs the indices of a loop on several threads. Both kinds of executor run every index exactly
// once. The assignment of indices to threads is unspecified, so a body may write only data that
// belongs to its index. If bodies throw, the exception of the lowest index is thrown again on the
// calling thread after all bodies have ended. An executor runs one loop at a time; the calling
// thread works too. A loop allocates no memory. An executor limits no other executor, and no loop
// that the caller runs with oneTBB. Bodies run in the default floating-point mode (float_mode.hpp).
// After fork() the child may use the executors of its parent, also those that another thread was
// using: an executor starts threads of its own there.
class Executor {
 public:
  virtual ~Executor() = default;

  // Returns the number of threads that run a loop, including the calling one.
  virtual int threads() const = 0;

  // Calls body(i) once for each i in [0, count) and returns when all calls have ended.
  template <class Body>
  void for_each(std::int64_t count, Body&& body) {
    const DefaultFloatMode mode;
    using Plain = std::remove_reference_t<Body>;
    run(count, {const_cast<void*>(static_cast<const void*>(&body)),
                [](void* object, std::int64_t i) { (*static_cast<Plain*>(object))(i); }});
  }

 protected:
  // A callable of any type, with the function that calls it.
  struct Task {
    void* object;
    void (*call)(void* object, std::int64_t index);
  };
  virtual void run(std::int64_t count, Task task) = 0;
};

// The implementation that runs the loops: oneTBB or std::jthread.
enum class ExecutorKind { Tbb, Threads };

// Returns an executor of the given kind. `threads` is 1 to kMostThreads, or 0 for one thread per
// core. The executor has fewer threads if the system refuses to start so many, and one of oneTBB
// has at most one thread per core; Executor::threads() is the number that it has. oneTBB cannot be
// used after fork(), so in the child the loops of both kinds run on std::jthread. Throws
// Error{InvalidArgument} for another number of threads, if `kind` is Tbb and the library was built
// without oneTBB, and if TESSERA_TARGET is not an instruction set of this CPU
// (instruction_sets.hpp).
std::unique_ptr<Executor> make_executor(ExecutorKind kind, int threads = 0);

// Returns an executor that uses oneTBB if the library was built with it and `threads` is not larger
// than the number of cores, else std::jthread.
std::unique_ptr<Executor> make_executor(int threads = 0);

// Returns true if the library was built with this kind of executor.
bool has_executor(ExecutorKind kind);

}  // namespace tessera
