#include "tessera/base/placement.hpp"

#include <ostream>

#include "tessera/base/error.hpp"

namespace tessera {

std::string_view to_string(Placement placement) {
  switch (placement) {
    case Placement::EvenSpread:
      return "even-spread";
    case Placement::AsLeft:
      return "as-left";
    case Placement::AtHome:
      return "at-home";
  }
  assertion_failed("every placement has a name", __FILE__, __LINE__);
}

std::ostream& operator<<(std::ostream& out, Placement placement) {
  return out << to_string(placement);
}

}  // namespace tessera
