#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

namespace tessera::layer {

// Refers to a function change(part, first) that changes a part of a list of values, of which
// `first` is the position of the first one. The function must outlive this object.
class ChangePart {
 public:
  template <class Change>
    requires(!std::is_same_v<std::remove_cvref_t<Change>, ChangePart>)
  explicit ChangePart(Change&& change)
      : object_(const_cast<void*>(static_cast<const void*>(&change))),
        call_([](void* object, std::span<float> part, std::int64_t first) {
          (*static_cast<std::remove_reference_t<Change>*>(object))(part, first);
        }) {}

  void operator()(std::span<float> part, std::int64_t first) const { call_(object_, part, first); }

 private:
  void* object_;
  void (*call_)(void* object, std::span<float> part, std::int64_t first);
};

}  // namespace tessera::layer
