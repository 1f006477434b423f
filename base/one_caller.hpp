#pragma once

#include <atomic>
#include <string_view>

namespace tessera {

// Detects that two threads call one object at the same time, or that a callback calls the object
// whose call it is part of. The second call is refused; the first one is not disturbed. An object
// holds a OneCaller and enters it in each function that changes the object or its scratch memory.
class OneCaller {
 public:
  // Ends the call when it goes out of scope.
  class Call {
   public:
    explicit Call(std::atomic_flag& busy) : busy_(busy) {}
    ~Call() { busy_.clear(std::memory_order_release); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    std::atomic_flag& busy_;
  };

  OneCaller() = default;
  // No call is running on a new object, whatever the other one does.
  OneCaller(OneCaller&&) noexcept {}
  OneCaller& operator=(OneCaller&&) = delete;

  // Begins a call of `function`. Throws Error{InvalidArgument} if a call is running. One atomic
  // operation.
  [[nodiscard]] Call enter(std::string_view function) {
    if (busy_.test_and_set(std::memory_order_acquire)) refuse(function);
    return Call(busy_);
  }

 private:
  [[noreturn]] static void refuse(std::string_view function);

  std::atomic_flag busy_;
};

}  // namespace tessera
