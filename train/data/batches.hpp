#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/train/data/idx.hpp"

namespace tessera::train {

// The rule that makes a number of a pixel p: (p / 255 - mean) / deviation. The defaults are those
// of the training images of Fashion-MNIST.
struct Normalisation {
  double mean = 0.2860, deviation = 0.3530;
  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

// Batches of pictures as operands of a layer. Which pictures a batch has depends on seed, epoch and
// index alone, so that a run can go on anywhere. One thread at a time uses an object.
class Batches {
 public:
  // The images must outlive the object. Throws Error{InvalidArgument} for a batch below 1 or above
  // the number of images, and for a deviation that is not above 0 and finite.
  Batches(const LabelledImages& images, std::int64_t batch, std::uint64_t seed,
          const Normalisation& normalisation = {});

  std::int64_t batch() const { return batch_; }

  // Returns the number of whole batches of an epoch. Images that fill no batch are left out of the
  // epoch; the next one has another order.
  std::int64_t count() const { return images_->count() / batch_; }

  // Writes the batch of an epoch, both counted from 0, as columns of s [features][batch] and its
  // labels [batch]. s may have more rows; those are not written. The order of the images is drawn
  // where the epoch is not that of the call before, in O(images); it allocates nothing.
  void load(std::int64_t epoch, std::int64_t index, MatrixView<float> s,
            std::span<std::int32_t> labels);

  // Writes the images from `begin` on in the order of the data set in the same form, one for each
  // column of s, with at least as many labels. Columns beyond the last image are 0. Returns the
  // number of images. Throws Error{InvalidArgument} for a `begin` outside 0..images.
  std::int64_t load_in_order(std::int64_t begin, MatrixView<float> s,
                             std::span<std::int32_t> labels) const;

 private:
  void draw_order(std::int64_t epoch);
  void write_columns(std::span<const std::int32_t> images, MatrixView<float> s) const;

  const LabelledImages* images_;
  std::int64_t batch_;
  std::uint64_t seed_;
  std::array<float, 256> number_of_;  // of each pixel
  std::int64_t epoch_ = -1;           // whose order is in order_
  std::vector<std::int32_t> order_;   // [images]
};

}  // namespace tessera::train
