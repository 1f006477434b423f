#include "tessera/base/one_caller.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera {

void OneCaller::refuse(std::string_view function) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: another call of this layer is running; one thread at a time may use "
                          "a layer, so make a layer for each thread or take turns",
                          function));
}

}  // namespace tessera
