#pragma once

#include <memory>
#include <utility>

#include "tessera/sparse/checked.hpp"

namespace tessera::sparse::internal {

// For results that are legal by the way they are made from a legal matrix.
struct Proven {
  template <class T>
  static CheckedCsr<T> from(Csr<T>&& legal) {
    return CheckedCsr<T>(std::make_shared<Csr<T>>(std::move(legal)));
  }
};

template <class T>
CheckedCsr<T> proven(Csr<T>&& legal) {
  return Proven::from(std::move(legal));
}

}  // namespace tessera::sparse::internal
