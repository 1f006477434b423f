#pragma once

#include <cstdint>

namespace tessera {

// From construction to destruction the calling thread computes in the default floating-point mode:
// it rounds to nearest, keeps denormal numbers and raises no signal. The mode that the thread had
// before is then restored, with its exception flags. Results therefore depend neither on the mode
// of the caller nor on the thread that computes them. Every call of the library that computes has
// such an object, and so has every thread of an executor; functions that a caller passes run in the
// default mode, too. Objects may be nested. Costs a few nanoseconds.
class DefaultFloatMode {
 public:
  DefaultFloatMode() noexcept;
  ~DefaultFloatMode();
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  std::uint64_t before_;
  bool is_changed_;
};

}  // namespace tessera
