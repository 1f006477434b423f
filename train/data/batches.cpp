#include "tessera/train/data/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"

namespace tessera::train {
namespace {

void require_size(std::string_view what, std::int64_t given, std::int64_t least) {
  if (given >= least) return;
  throw_invalid(
      fmt::format("batch of images: room for {} {}; there must be {}", given, what, least));
}

}  // namespace

Batches::Batches(const LabelledImages& images, std::int64_t batch, std::uint64_t seed,
                 const Normalisation& normalisation)
    : images_(&images), batch_(batch), seed_(seed), order_(images.labels.size()) {
  if (batch < 1 || batch > images.count())
    throw_invalid(
        fmt::format("batches of {} from {} images; a batch must "
                    "have 1 to {}",
                    batch, images.count(), images.count()));
  if (!(normalisation.deviation > 0 &&
        normalisation.deviation <= std::numeric_limits<double>::max()))
    throw_invalid(
        fmt::format("normalisation of pixels: the deviation is {}; it must be above 0 and "
                    "finite",
                    normalisation.deviation));
  for (std::size_t p = 0; p < number_of_.size(); ++p)
    number_of_[p] = float((double(p) / 255 - normalisation.mean) / normalisation.deviation);
}

void Batches::draw_order(std::int64_t epoch) {
  std::iota(order_.begin(), order_.end(), 0);
  // Any fixed mix of the two that keeps (1, 2) and (2, 1) apart will do.
  Random random(seed_ * 0x9e3779b97f4a7c15 + std::uint64_t(epoch));
  for (std::size_t i = order_.size(); i > 1; --i)
    std::swap(order_[i - 1], order_[std::size_t(random.below(std::int64_t(i)))]);
  epoch_ = epoch;
}

void Batches::load(std::int64_t epoch, std::int64_t index, MatrixView<float> s,
                   std::span<std::int32_t> labels) {
  if (epoch < 0 || index < 0 || index >= count())
    throw_invalid(
        fmt::format("batch {} of epoch {}; batches are 0..{}", index, epoch, count() - 1));
  require_size("features", s.rows, images_->features());
  require_size("columns", s.cols, batch_);
  require_size("labels", std::ssize(labels), batch_);
  if (epoch != epoch_) draw_order(epoch);
  const std::span chosen(order_.data() + index * batch_, std::size_t(batch_));
  write_columns(chosen, s);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    labels[i] = images_->labels[std::size_t(chosen[i])];
}

std::int64_t Batches::load_in_order(std::int64_t begin, MatrixView<float> s,
                                    std::span<std::int32_t> labels) const {
  require_size("features", s.rows, images_->features());
  require_size("labels", std::ssize(labels), s.cols);
  if (begin < 0 || begin > images_->count())
    throw_invalid(fmt::format("images from {} on; it must be in 0..{}", begin, images_->count()));
  const std::int64_t count = std::min(images_->count() - begin, s.cols);
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(count));
  std::iota(chosen.begin(), chosen.end(), std::int32_t(begin));
  write_columns(chosen, s);
  for (std::int64_t r = 0; r < images_->features(); ++r)
    for (std::int64_t c = count; c < s.cols; ++c) s(r, c) = 0;
  std::copy_n(images_->labels.begin() + begin, count, labels.begin());
  return count;
}

// Sixteen images by sixteen pixels at a time: the bytes of a line of each image are used while they
// are near, and a row of s is written a cache line at a time.
void Batches::write_columns(std::span<const std::int32_t> images, MatrixView<float> s) const {
  constexpr std::int64_t kSide = 16;
  const std::int64_t features = images_->features(), columns = std::ssize(images);
  for (std::int64_t c = 0; c < columns; c += kSide) {
    const std::int64_t width = std::min(kSide, columns - c);
    std::array<const std::uint8_t*, kSide> from{};
    for (std::int64_t i = 0; i < width; ++i)
      from[std::size_t(i)] = images_->pixels.data() + images[std::size_t(c + i)] * features;
    for (std::int64_t begin = 0; begin < features; begin += kSide) {
      const std::int64_t end = std::min(begin + kSide, features);
      for (std::int64_t f = begin; f < end; ++f)
        for (std::int64_t i = 0; i < width; ++i) s(f, c + i) = number_of_[from[std::size_t(i)][f]];
    }
  }
}

}  // namespace tessera::train
