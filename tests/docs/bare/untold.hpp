#pragma once

namespace tessera::test {

struct Untold {
  int value;
};

}  // namespace tessera::test
