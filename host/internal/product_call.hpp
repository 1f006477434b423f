#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/internal/epilogue.hpp"
#include "tessera/host/internal/panels.hpp"
#include "tessera/host/internal/pass_clock.hpp"
#include "tessera/host/internal/pass_control.hpp"
#include "tessera/host/times.hpp"

namespace tessera::host::internal {

// The memory that one product at a time writes beside its result. Calls that run at the same time
// need one each; it grows with the calls and may serve any product of a group.
template <class T>
struct ProductScratch {
  struct Thread {
    AlignedVector<float> sums;
    double kernel_seconds = 0;
  };
  HostColumns columns;   // of this call
  bool streams = false;  // of this call: KernelArgs::streams
  HostPanels<T> in{HostPanels<T>::Kept::One};
  HostPanels<float, T> wide_in{HostPanels<float, T>::Kept::One};
  AlignedVector<T> transposed;  // columns of the operand, for packed rows
  std::vector<Thread> threads;
  PassClock clock{0};  // of this call

  // Begins a call of so many sums, whose threads need this room for theirs. Allocates if no call
  // needed as much.
  void begin(std::int64_t sums_of_call, int thread_count, std::int64_t room) {
    clock = PassClock(sums_of_call);
    threads.resize(std::size_t(thread_count));
    for (Thread& thread : threads) {
      thread.kernel_seconds = 0;
      grow(thread.sums, std::size_t(room));
    }
  }

  // Returns the elements from row to row in the sums of a thread.
  std::int64_t sums_stride() const { return columns.computed(columns.width); }
};

// One call of a product out = R * in, which all forms of R take alike. Calls that run at the same
// time need their own scratch memory and executor.
template <class T>
struct ProductCall {
  MatrixView<const T> in;
  MatrixView<T> out;
  const Epilogue<T>& after;  // applied to complete results
  PassControl& control;
  HostTimes& times;  // the call adds its own
  ProductScratch<T>& scratch;
  Executor& executor;
};

}  // namespace tessera::host::internal
