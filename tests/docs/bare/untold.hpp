#pragma once

namespace tessera::inline v0::test {

struct Untold {
  int value;
};

}  // namespace tessera::inline v0::test
