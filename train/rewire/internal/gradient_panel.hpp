#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/train/rewire/grow.hpp"

namespace tessera::train::internal {

// A panel of the dense gradient: some columns of a few rows. One thread uses an object.
class GradientPanel {
 public:
  // The sizes of a panel, whole blocks.
  struct Size {
    std::int64_t rows = 0, cols = 0;
  };

  // Allocates scratch memory for panels of this size.
  GradientPanel(Size size, std::span<const GradientBatch> batches);

  // Reads the columns [begin, begin + count) of all batches' s, for the calls of compute() that
  // follow. count is at most the size's.
  void set_columns(std::int64_t begin, std::int64_t count);

  // Computes the gradient of the rows [begin, begin + count), summed over z in ascending order and
  // then over the batches. Row r of it begins at r * size.cols.
  std::span<const float> compute(std::int64_t begin, std::int64_t count);

 private:
  void add_rows(const GradientBatch& batch, const float* columns, std::int64_t begin,
                std::int64_t count);

  Size size_;
  std::span<const GradientBatch> batches_;
  std::int64_t columns_ = 0;
  AlignedVector<float> columns_of_s_;  // [z of all batches][cols of a panel]
  AlignedVector<float> panel_;         // [rows][cols]
};

}  // namespace tessera::train::internal
