#pragma once

#include <memory>
#include <span>
#include <utility>

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

namespace internal {
struct Proven;
}

// A Csr that is legal by the rules of check.hpp, with the proof in its type: functions that take
// one check nothing. It is made by checked() alone, or by a conversion of another CheckedCsr.
//
// Copies share one matrix, so handing one on costs a pointer. The pattern never changes; values
// may, and are then copied first where another CheckedCsr shares them. One object is for one thread
// at a time; copies of it may be used on different threads as long as none of them writes values.
// Example: const CheckedCsr<float> weights = checked(read_my_weights());  // checked here, once
//          layer.set_weights(weights);                                     // shared, not copied
template <class T>
class CheckedCsr {
 public:
  // 0 x 0, no blocks.
  CheckedCsr() : matrix_(std::make_shared<Csr<T>>()) {}

  const Csr<T>& operator*() const { return *matrix_; }
  const Csr<T>* operator->() const { return matrix_.get(); }

  // The values, for writing: any value is legal. O(1), or one copy of the matrix where it is
  // shared.
  std::span<T> mutable_values() {
    if (matrix_.use_count() > 1) matrix_ = std::make_shared<Csr<T>>(*matrix_);
    return matrix_->values;
  }

  // True: both have the same fields, wherever they are stored.
  friend bool operator==(const CheckedCsr& a, const CheckedCsr& b) { return *a == *b; }

 private:
  friend struct internal::Proven;
  explicit CheckedCsr(Csr<T>&& legal) : matrix_(std::make_shared<Csr<T>>(std::move(legal))) {}

  std::shared_ptr<Csr<T>> matrix_;
};

// Checks the matrix, as check() does, and keeps it. Error{BadInput} as check(). T is float or
// double. Costs check(); a matrix that is moved in is not copied.
template <class T>
CheckedCsr<T> checked(Csr<T> matrix);

}  // namespace tessera::sparse
