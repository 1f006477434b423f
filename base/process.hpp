#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace tessera {

// Returns the number of calls of fork() between the process that loaded the library and this one: 0
// there, 1 in its children. Two processes that have the same memory therefore have different
// numbers. One atomic load.
std::uint32_t process_number() noexcept;

// Owns an object that other threads may use while a thread calls fork(): a lock, or a pool of
// threads. Only the thread that called fork() exists in the child, so a lock may be held there by
// nobody, and a pool has no threads. The child therefore makes an object of its own when it first
// asks for it. The object of the parent is neither used nor destroyed in the child; its memory is
// lost. Thread-safe.
//
// Example: a mutable OfProcess<std::mutex> mutex_ is locked by std::lock_guard lock(mutex_.get()).
template <class T>
class OfProcess {
 public:
  OfProcess() = default;
  OfProcess(const OfProcess&) = delete;
  OfProcess& operator=(const OfProcess&) = delete;
  ~OfProcess() {
    Held* const held = held_.load(std::memory_order_acquire);
    if (held != nullptr && held->process == process_number()) delete held;
  }

  // Returns the object of this process. `make` returns a std::unique_ptr to a new one; it is called
  // by the first call of a process, and an exception that it throws reaches the caller. If several
  // threads come first, one object is kept.
  template <class Make>
  T& get(Make&& make) {
    const std::uint32_t process = process_number();
    Held* held = held_.load(std::memory_order_acquire);
    if (held != nullptr && held->process == process) return *held->object;
    auto made = std::make_unique<Held>(Held{process, make()});
    if (held_.compare_exchange_strong(held, made.get(), std::memory_order_acq_rel))
      return *made.release()->object;
    return *held->object;
  }

  // Does the same with an object from the default constructor.
  T& get() {
    return get([] { return std::make_unique<T>(); });
  }

 private:
  struct Held {
    std::uint32_t process;
    std::unique_ptr<T> object;
  };

  std::atomic<Held*> held_ = nullptr;
};

}  // namespace tessera
