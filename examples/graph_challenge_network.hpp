#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tessera/tessera.hpp"

// MIT's GraphChallenge for sparse networks: its files, its numbers, what all machines do alike.
namespace tessera::inline v0::examples {

constexpr std::int64_t kNeurons = 1024, kLayers = 30;
constexpr double kWeightsPerNeuron = 32;
constexpr float kBias = -0.3f, kCap = 32;

struct Arguments {
  std::string folder;
  std::string machine = "gc200";
  DataType type = DataType::Float;
  int threads = 0;  // of this computer; 0: all
};

sparse::Csr<float> layer_weights(const Arguments& arguments, std::int64_t layer);

// [images][neurons] of the file.
Matrix<double> read_image_rows(const Arguments& arguments);

// transpose(Y): one image a column.
template <class T>
Matrix<T> read_images(const Arguments& a) {
  const Matrix<double> images = read_image_rows(a);
  Matrix<T> s(images.cols(), images.rows());
  for (std::int64_t y = 0; y < s.rows(); ++y)
    for (std::int64_t z = 0; z < s.cols(); ++z) s(y, z) = T(float(images(z, y)));
  return s;
}

// Prints which images, counted from 1, are alive, and whether the published answer says so too.
bool is_published(const Arguments& arguments, const std::vector<std::int64_t>& alive);

template <class T>
std::vector<std::int64_t> alive_in(const Matrix<T>& y) {
  std::vector<std::int64_t> alive;
  for (std::int64_t image = 0; image < y.cols(); ++image) {
    bool any = false;
    for (std::int64_t neuron = 0; neuron < y.rows(); ++neuron)
      any = any || float(y(neuron, image)) > 0;
    if (any) alive.push_back(image + 1);
  }
  return alive;
}

inline float activated(float value) { return std::clamp(value + kBias, 0.0f, kCap); }
// There are few halves, and converting them takes longer than looking them up.
inline Half activated(Half value) {
  static const std::vector<Half> table = [] {
    std::vector<Half> all;
    for (std::uint32_t bits = 0; bits <= UINT16_MAX; ++bits)
      all.push_back(Half(activated(float(Half::from_bits(std::uint16_t(bits))))));
    return all;
  }();
  return table[value.bits];
}

// Of an activated value: none lies below 0.
inline bool is_above_zero(float value) { return value > 0; }
inline bool is_above_zero(Half value) { return value.bits != 0; }

// In place; gives the number of values above 0.
template <class T>
std::int64_t activate(MatrixView<T> y, Executor& executor) {
  std::vector<std::int64_t> above(std::size_t(y.rows));
  executor.for_each(y.rows, [&](std::int64_t row) {
    std::int64_t own = 0;
    T* const values = y.row(row);
    for (std::int64_t z = 0; z < y.cols; ++z) {
      values[z] = activated(values[z]);
      own += is_above_zero(values[z]);
    }
    above[std::size_t(row)] = own;
  });
  return std::accumulate(above.begin(), above.end(), std::int64_t{0});
}

}  // namespace tessera::inline v0::examples
