#include "tessera/base/pass.hpp"

#include "tessera/base/error.hpp"

namespace tessera {

std::string to_string(Pass pass) {
  switch (pass) {
    case Pass::Fwd:
      return "Fwd";
    case Pass::GradA:
      return "GradA";
    case Pass::GradW:
      return "GradW";
  }
  assertion_failed("every pass has a name", __FILE__, __LINE__);
}

}  // namespace tessera
