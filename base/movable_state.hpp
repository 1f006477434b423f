#pragma once

#include <memory>
#include <typeinfo>
#include <utility>

namespace tessera {

namespace internal {

// Throws Error{InvalidArgument} for an object that was moved from; `state` is the type of its
// state, whose name without the last part is that of the object.
[[noreturn]] void refuse_moved_from(const std::type_info& state);

}  // namespace internal

// Owns the state of an object whose class has a move constructor. An object that was moved from has
// no state: it may be destroyed, and be assigned to if its class has an assignment. Every other use
// throws Error{InvalidArgument}, which names the class, and changes nothing.
template <class State>
class MovableState {
 public:
  MovableState() = default;
  MovableState(std::unique_ptr<State> state) : state_(std::move(state)) {}

  State& operator*() const {
    if (!state_) internal::refuse_moved_from(typeid(State));
    return *state_;
  }
  State* operator->() const { return &**this; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tessera
