#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

namespace internal {
struct Proven;
}

// A Csr that is legal by the rules of check.hpp, with the proof in its type: functions that take
// one check nothing. A Csr converts to it, which checks the matrix as checked() does and moves it
// if it can; a call that takes a CheckedCsr can so be given either.
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

  // Does what checked() does.
  CheckedCsr(Csr<T> matrix);

  const Csr<T>& operator*() const { return *matrix_; }
  const Csr<T>* operator->() const { return matrix_.get(); }

  // The values, for writing: any value is legal. O(1), or one copy of the matrix where it is
  // shared.
  std::span<T> mutable_values() {
    if (matrix_.use_count() > 1) matrix_ = std::make_shared<Csr<T>>(*matrix_);
    return matrix_->values;
  }

  // Returns the matrix, moved out if no other CheckedCsr shares it. This one is empty afterwards.
  Csr<T> taken() && {
    Csr<T> matrix = matrix_.use_count() > 1 ? *matrix_ : std::move(*matrix_);
    *this = {};
    return matrix;
  }

  // True: both have the same fields, wherever they are stored.
  friend bool operator==(const CheckedCsr& a, const CheckedCsr& b) { return *a == *b; }

 private:
  friend struct internal::Proven;
  explicit CheckedCsr(std::shared_ptr<Csr<T>> legal) : matrix_(std::move(legal)) {}

  std::shared_ptr<Csr<T>> matrix_;
};

// Checks the matrix, as check() does, and keeps it. Error{BadInput} as check(). T is float or
// double. Costs check(); a matrix that is moved in is not copied.
template <class T>
CheckedCsr<T> checked(Csr<T> matrix);

// Does the same for a matrix of each group.
template <class T>
std::vector<CheckedCsr<T>> checked(std::vector<Csr<T>> matrices) {
  std::vector<CheckedCsr<T>> legal;
  for (Csr<T>& matrix : matrices) legal.push_back(checked(std::move(matrix)));
  return legal;
}

}  // namespace tessera::sparse
