#include "tessera/base/one_caller.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera {

void OneCaller::refuse_if_interrupted(std::string_view function, std::uint64_t seen) {
  const bool is_of_parent = seen != 0 && seen / 2 != std::uint64_t{process_number()} + 1;
  if (!is_of_parent || seen % 2 == kPass) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: another thread was changing this layer when fork() made this "
                          "process, so it may be half changed here; make the layer again, or call "
                          "fork() while no thread changes it",
                          function));
}

void OneCaller::enter_instead(std::string_view function, std::uint64_t seen, std::uint64_t own) {
  refuse_if_interrupted(function, seen);
  const bool is_of_parent = seen / 2 != own / 2;
  if (is_of_parent && state_.compare_exchange_strong(seen, own, std::memory_order_acquire)) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: another call of this layer is running; one thread at a time may use "
                          "a layer, so make a layer for each thread or take turns",
                          function));
}

}  // namespace tessera
