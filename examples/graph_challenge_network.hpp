#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/tessera.hpp"

// MIT's GraphChallenge for sparse networks: its files, its constants, and the steps that are the
// same on all machines.
namespace tessera::examples {

constexpr std::int64_t kNeurons = 1024, kLayers = 30;
constexpr double kWeightsPerNeuron = 32;
constexpr float kBias = -0.3f, kCap = 32;

struct Arguments {
  std::string folder;
  std::string machine = "gc200";
  DataType type = DataType::Float;
  int threads = 0;  // of this computer; 0: all of them
  bool resident = false;
};

// Weights [neurons of the output][neurons of the input] of layer 1 .. kLayers, from its file.
sparse::Csr<float> layer_weights(const Arguments& arguments, std::int64_t layer);

// The images of the file, [images][neurons].
Matrix<double> read_image_rows(const Arguments& arguments);

// The images as transpose(Y), [neurons][images]: one image a column.
template <class T>
Matrix<T> read_images(const Arguments& a) {
  const Matrix<double> images = read_image_rows(a);
  Matrix<T> s(images.cols(), images.rows());
  for (std::int64_t y = 0; y < s.rows(); ++y)
    for (std::int64_t z = 0; z < s.cols(); ++z) s(y, z) = T(float(images(z, y)));
  return s;
}

// Prints which images, counted from 1, are alive, and whether that is the published answer. Returns
// true if it is.
bool is_published(const Arguments& arguments, const std::vector<std::int64_t>& alive);

// Numbers of the images, counted from 1, with any value above 0.
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

// Bias, ReLU and cap of one value.
inline float activated(float value) { return std::min(std::max(value + kBias, 0.0f), kCap); }

// activated() of every half, by its bits: a table is faster than two conversions.
const std::vector<Half>& activated_halves();

template <class T>
struct Activation {
  T operator()(T value) const { return activated(value); }
};
template <>
struct Activation<Half> {
  const Half* table = activated_halves().data();
  Half operator()(Half value) const { return table[value.bits]; }
};

// The bits of an activated value. No activated value is below 0, so the bits of several values,
// or-ed, are 0 exactly if all of them are 0.
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
inline std::uint16_t bits_of(Half value) { return value.bits; }

// Applies bias, ReLU and cap to `count` values that follow each other; `to` may be `from`. Returns
// the number of results above 0.
template <class T>
std::int64_t activate(const T* from, std::int64_t count, T* to) {
  const Activation<T> activation;
  // As wide as a float, so that the compiler counts as many values at once as it activates.
  std::int32_t above = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = activation(from[i]);
    to[i] = value;
    above += bits_of(value) != 0;
  }
  return above;
}

}  // namespace tessera::examples
