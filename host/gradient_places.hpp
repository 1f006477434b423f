#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/movable_state.hpp"
#include "tessera/host/gradient_panels.hpp"

namespace tessera::host {

// Places of a matrix, as the pattern of a Csr: block row after block row, columns ascending.
struct GradientPlaces {
  BlockShape block;
  std::span<const std::int64_t> row_begin;  // [block rows + 1]
  std::span<const std::int32_t> col;        // [places]
};

// The gradient dQ * transpose(S), summed over batches, at places that a caller gives for some block
// rows at a time. The operands are copied where gradient_at_places copies them, once.
class PlacesGradient {
 public:
  // Block rows that are worth one call: a call reads all of S from a far cache.
  static constexpr std::int64_t kRowsOfACall = 256;

  // `places` is how many there will be in all, about. The operands must outlive the object. Throws
  // Error{InvalidArgument} unless all batches have operands of one matrix.
  PlacesGradient(BlockShape block, std::int64_t places, std::span<const GradientOperands> batches,
                 Executor& executor);
  ~PlacesGradient();
  PlacesGradient(PlacesGradient&&) noexcept;
  PlacesGradient& operator=(PlacesGradient&&) noexcept;

  // Writes gradients[places][block.rows][block.cols] of the places in the block rows from
  // `first_row` on, which row_begin counts from 0. Throws the errors of gradient_at_places.
  // Thread-safe; allocates nothing.
  void compute(std::int64_t first_row, std::span<const std::int64_t> row_begin,
               std::span<const std::int32_t> col, std::span<float> gradients) const;

 private:
  struct State;
  MovableState<State> state_;
};

// Writes the gradient dQ * transpose(S) at these places alone: gradients[places][block.rows]
// [block.cols]. Nothing is encoded, so a list that is used once costs about as much as the GradW
// pass of a layer with as many values. The bits are those of that pass, where it is sparse
// and its layer was planned for as many columns; they do not depend on the threads. Operands may
// have any strides, and may end inside the last block, where missing rows count as 0; those without
// contiguous rows or with missing ones are copied, and so is `s` if the batch has more than 256
// columns. Throws Error{InvalidArgument} unless operands and lists have the sizes of one matrix,
// and Error{BadInput}, which names the place, for columns that are outside it or do not ascend.
// O(places * block area * z + block rows).
void gradient_at_places(const GradientOperands& batch, const GradientPlaces& places,
                        Executor& executor, std::span<float> gradients);

}  // namespace tessera::host
