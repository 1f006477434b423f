#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::verify {

// The position of a pass just before one of its steps begins.
struct Progress {
  std::string_view step;   // valid during the call
  std::int64_t begun = 0;  // steps of this pass that have begun before this one
};

}  // namespace tessera::verify
