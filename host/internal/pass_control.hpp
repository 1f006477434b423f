#pragma once

#include <cstdint>
#include <string_view>

#include "tessera/host/pass_options.hpp"

namespace tessera::host::internal {

// Counts the steps of one pass over all groups, and asks the caller's options before each of them.
class PassControl {
 public:
  // The options must outlive this object.
  explicit PassControl(const PassOptions& options) : options_(options) {}

  // Must be called before each step. Returns false if the caller stops the pass; the step must not
  // run then. An exception of the caller's progress function is not caught.
  [[nodiscard]] bool begin(std::string_view step) {
    if (options_.stop.stop_requested()) return false;
    if (options_.progress) options_.progress({step, begun_});
    ++begun_;
    return true;
  }

 private:
  const PassOptions& options_;
  std::int64_t begun_ = 0;
};

}  // namespace tessera::host::internal
