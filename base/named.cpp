#include "tessera/base/named.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera {

void throw_unknown_name(std::string_view name, std::string_view what,
                        const std::vector<std::string>& legal) {
  std::string list;
  for (std::size_t i = 0; i < legal.size(); ++i)
    list += (i == 0 ? "" : i + 1 < legal.size() ? ", " : " or ") + legal[i];
  throw Error(ErrorCode::InvalidArgument, fmt::format("{} is \"{}\"; it is {}", what, name, list));
}

}  // namespace tessera
