#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/codelets/find_large.hpp"

namespace tessera::host {

// The operands of the weight gradient dQ * transpose(S) of one batch: q_grad is [rows][z] and s is
// [cols][z] for weights of [rows][cols]. The views may have any strides.
struct GradientOperands {
  MatrixView<const float> q_grad, s;
};

// The rows and columns of a panel of the dense gradient.
struct PanelSize {
  std::int64_t rows = 0, cols = 0;
};

// Returns the size of the panels that are computed fastest, rounded up to whole blocks: 1 MiB with
// a library and half of it with our kernel, which stay in a second-level cache until they are read.
// Does not depend on the threads.
PanelSize gradient_panel_size(BlockShape block = {});

// Computes panels of the dense gradient on the calling thread, by the library that was built in, or
// by our kernel. One thread at a time uses an object.
class GradientPanel {
 public:
  // Allocates one panel of this size. The batches' list and operands must outlive the object; the
  // gradients of several batches are summed, in their order. Throws Error{InvalidArgument} unless
  // all have the same rows and each has one z. own_kernel: our kernel is used even if a library was
  // built in, to compare them.
  GradientPanel(PanelSize size, std::span<const GradientOperands> batches, bool own_kernel = false);
  ~GradientPanel();
  GradientPanel(GradientPanel&&) noexcept;
  GradientPanel& operator=(GradientPanel&&) noexcept;

  // Computes the gradient of these rows and columns, at most size of them; without batches it is 0.
  // The view is valid until the next call. Our kernel reads a transposed copy of the columns' rows
  // of S, and the library copies of operands without contiguous rows; copies of S serve successive
  // calls with the same columns. Allocates in a copy that is larger than any before; the library
  // may allocate in every call. 2 * rows * cols * z flops.
  MatrixView<const float> compute(Range rows, Range cols);

 private:
  struct State;
  MovableState<State> state_;
};

// Elements that the list of find_large() has beyond the number of values.
inline constexpr std::int64_t kLargeSlack = codelets::kLargeSlack;

// Lists the positions of the values whose magnitude is not below the threshold, as
// codelets::find_large does: for searches in the rows of a panel.
std::int64_t find_large(std::span<const float> values, float threshold,
                        std::span<std::uint32_t> positions) noexcept;

// The place of a panel, and the thread that computed it: 0 .. executor.threads() - 1.
struct PanelAt {
  Range rows, cols;
  std::int64_t thread = 0;
};

// Computes the dense gradient panel by panel and calls visit(at, values) for each, with values
// [at.rows][at.cols] that are valid during the call. Calls come from all threads of the executor at
// the same time, and in any order; those of one thread follow one another. The values have the same
// bits for any number of threads. Memory, for each thread: one panel, and the copies of
// GradientPanel::compute(). Throws as GradientPanel does, and
// Error{InvalidArgument} for a size below 1; an exception of `visit` reaches the caller. A matrix
// without rows or columns has no panels.
void for_each_gradient_panel(
    PanelSize size, std::span<const GradientOperands> batches, Executor& executor,
    const std::function<void(const PanelAt&, MatrixView<const float>)>& visit);

}  // namespace tessera::host
