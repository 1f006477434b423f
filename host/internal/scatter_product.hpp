#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/even_part.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/place_sums.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/epilogue.hpp"
#include "tessera/host/internal/panels.hpp"

namespace tessera::host::internal {

// The size of a product whose places are not grouped by rows of the result.
struct ScatterSize {
  std::int64_t rows = 0, cols = 0, places = 0, z = 0;

  // Returns the parts of the places that have sums of their own, which threads share. There is one
  // where clearing and adding the parts would take more than a sixteenth of the work. No number of
  // threads and no cache decides, as other parts mean other last bits.
  std::int64_t parts() const {
    constexpr std::int64_t kMostParts = 8, kPlacesOfRow = 16;
    return std::clamp<std::int64_t>(places / (kPlacesOfRow * std::max<std::int64_t>(rows, 1)), 1,
                                    kMostParts);
  }
  Range part(std::int64_t i) const { return even_part(places, parts(), i); }

  // Returns the columns of a panel, whose sums fit in half of a second-level cache.
  std::int64_t width(const HostCpu& cpu) const {
    constexpr std::int64_t kVector = 16, kMost = 64;
    const std::int64_t row_bytes = std::max<std::int64_t>(rows, 1) * std::int64_t{sizeof(float)};
    const std::int64_t fitting = cpu.l2.value / 2 / row_bytes / kVector * kVector;
    return std::min(std::max<std::int64_t>(z, 1), std::clamp(fitting, kVector, kMost));
  }
};

// Computes a product by adding each place's term to the sums of its row. A unit of work is a panel
// of columns and a part of the places; when the units of some panels are done, threads share their
// rows, which they add up part after part and finish. The bits depend on the parts alone.
template <class T>
class ScatterProduct {
 public:
  ScatterProduct(const ScatterSize& size, MatrixView<const T> b, MatrixView<T> c,
                 const Epilogue<T>& after, Executor& executor)
      : size_(size), parts_(size.parts()), c_(c), after_(after), executor_(executor) {
    static const HostCpu cpu = read_host_cpu();
    width_ = size.width(cpu);
    at_once_ = ceil_div(2 * executor.threads(), parts_);
    b_.set_rows(size.cols);
    b_.begin(b, {width_, width_, width_ < size.z});
    b_.read({0, b_.count()}, executor);
    at_once_ = std::clamp<std::int64_t>(at_once_, 1, std::max<std::int64_t>(b_.count(), 1));
    sums_.resize(std::size_t(at_once_ * parts_ * size.rows * width_));
  }

  // `add(places, i)` adds the places i to places.out, whose rows are those of a panel of B.
  template <class Index, class Add>
  void run(const codelets::ScatteredPlaces<T, Index>& places, const Add& add) {
    for (std::int64_t first = 0; first < b_.count(); first += at_once_) {
      const std::int64_t panels = std::min(at_once_, b_.count() - first);
      executor_.for_each(panels * parts_, [&](std::int64_t unit) {
        add_part(first + unit / parts_, unit, places, add);
      });
      const std::int64_t chunks = ceil_div(size_.rows, kRows);
      executor_.for_each(panels * chunks, [&](std::int64_t i) {
        const std::int64_t row = i % chunks * kRows;
        finish(first, i / chunks, {row, std::min(row + kRows, size_.rows)});
      });
    }
  }

 private:
  static constexpr std::int64_t kRows = 256;  // that a thread finishes at once

  float* sums(std::int64_t unit) { return sums_.data() + unit * size_.rows * width_; }

  template <class Index, class Add>
  void add_part(std::int64_t panel, std::int64_t unit, codelets::ScatteredPlaces<T, Index> places,
                const Add& add) {
    std::fill_n(sums(unit), size_.rows * width_, 0.0f);
    const codelets::Operand in = b_.panel(panel, {0, size_.cols});
    places.in = static_cast<const T*>(in.data);
    places.in_stride = in.row_stride;
    places.out = sums(unit);
    places.out_stride = width_;
    places.z = in.z;
    add(std::as_const(places), size_.part(unit % parts_));
  }

  void finish(std::int64_t first, std::int64_t panel, Range rows) {
    float* const own = sums(panel * parts_) + rows.begin * width_;
    for (std::int64_t part = 1; part < parts_; ++part) {
      const float* const more = sums(panel * parts_ + part) + rows.begin * width_;
      for (std::int64_t i = 0; i < rows.size() * width_; ++i) own[i] += more[i];
    }
    const Range cols = b_.columns(first + panel);
    if (!after_.empty()) after_.apply(own, width_, rows, cols);
    copy_from_rows<T>(own, width_, c_.sub(rows, cols));
  }

  const ScatterSize size_;
  const std::int64_t parts_;
  const MatrixView<T> c_;
  const Epilogue<T>& after_;
  Executor& executor_;
  std::int64_t width_ = 1, at_once_ = 1;
  HostPanels<T> b_{HostPanels<T>::Kept::All};
  AlignedVector<float> sums_;  // [panels at once][parts][rows][width]
};

}  // namespace tessera::host::internal
