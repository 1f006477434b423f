#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "tessera/base/float_mode.hpp"
#include "tessera/base/process.hpp"

namespace tessera {

// Detects that two threads call one object at the same time, or that a callback calls the object
// whose call it is part of. The second call is refused; the first one is not disturbed. An object
// holds a OneCaller and enters it in each function that changes the object or its scratch memory.
// The call computes in the default floating-point mode (float_mode.hpp).
//
// A call that another thread runs while a thread calls fork() never ends in the child. Its object
// may be half changed there, so all its calls are refused; but a call that changes scratch memory
// alone may be begun again.
class OneCaller {
 public:
  // Ends the call when it goes out of scope.
  class Call {
   public:
    explicit Call(std::atomic<std::uint64_t>& state) : state_(state) {}
    ~Call() { state_.store(0, std::memory_order_release); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    std::atomic<std::uint64_t>& state_;
    DefaultFloatMode mode_;
  };

  OneCaller() = default;
  // No call is running on a new object, whatever the other one does.
  OneCaller(OneCaller&&) noexcept {}
  OneCaller& operator=(OneCaller&&) = delete;

  // Begins a call of `function`. Throws Error{InvalidArgument} if a call is running, or was running
  // on another thread when this process was made. One atomic operation.
  [[nodiscard]] Call enter(std::string_view function) { return enter(function, kChanges); }

  // Does the same for a call that changes nothing of the object but its scratch memory.
  [[nodiscard]] Call enter_pass(std::string_view function) { return enter(function, kPass); }

  // Throws Error{InvalidArgument} if another thread was changing the object when this process was
  // made. For functions that read the object beside other calls, under a lock of their own.
  void refuse_if_interrupted(std::string_view function) const {
    refuse_if_interrupted(function, state_.load(std::memory_order_relaxed));
  }

 private:
  // The state is 0, or 2 * (process_number() + 1) of the running call and one of these.
  static constexpr std::uint64_t kPass = 0, kChanges = 1;

  [[nodiscard]] Call enter(std::string_view function, std::uint64_t kind) {
    const std::uint64_t own = 2 * (std::uint64_t{process_number()} + 1) + kind;
    std::uint64_t seen = 0;
    if (!state_.compare_exchange_strong(seen, own, std::memory_order_acquire))
      enter_instead(function, seen, own);
    return Call(state_);
  }

  static void refuse_if_interrupted(std::string_view function, std::uint64_t seen);

  // Takes the place of an interrupted pass of another process, or refuses.
  void enter_instead(std::string_view function, std::uint64_t seen, std::uint64_t own);

  std::atomic<std::uint64_t> state_ = 0;
};

}  // namespace tessera
