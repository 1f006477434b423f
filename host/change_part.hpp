#pragma once

#include "tessera/layer/change_part.hpp"

namespace tessera::host {

using layer::ChangePart;

}  // namespace tessera::host
