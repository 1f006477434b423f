#include "tessera/base/movable_state.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "tessera/base/error.hpp"

namespace tessera::internal {
namespace {

// Returns "tessera::host::HostLayer" for the type of its state.
std::string name_of_owner(const std::type_info& state) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(state.name(), nullptr, nullptr, &status), &std::free);
  const std::string name = status == 0 ? text.get() : state.name();
  return name.substr(0, name.rfind("::"));
}

}  // namespace

void refuse_moved_from(const std::type_info& state) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("this {} was moved from, so it has no contents; use the object that it "
                          "was moved to",
                          name_of_owner(state)));
}

}  // namespace tessera::internal
