#include "tessera/examples/graph_challenge_network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::examples {
namespace {

// Numbers of the images, counted from 1, that are alive in the published answer.
std::vector<std::int64_t> published(const Arguments& a) {
  const std::string path =
      fmt::format("{}/neuron{}-l120-categories_subset.mtx", a.folder, kNeurons);
  const sparse::Csr<double> answer = io::read_matrix(path).matrix;
  std::vector<std::int64_t> alive;
  for (std::int64_t image = 0; image < answer.rows; ++image)
    if (answer.row_begin[std::size_t(image)] < answer.row_begin[std::size_t(image) + 1])
      alive.push_back(image + 1);
  return alive;
}

}  // namespace

sparse::Csr<float> layer_weights(const Arguments& a, std::int64_t layer) {
  const std::string path = fmt::format("{}/n{}-l{}.mtx", a.folder, kNeurons, layer);
  // The rows of a file are inputs: transpose(Y * W) is transpose(W) * transpose(Y).
  return sparse::transpose(sparse::cast<float>(io::read_matrix(path).matrix));
}

Matrix<double> read_image_rows(const Arguments& a) {
  const std::string path = fmt::format("{}/sparse-images-{}_subset.mtx", a.folder, kNeurons);
  return sparse::to_dense(io::read_matrix(path).matrix);
}

const std::vector<Half>& activated_halves() {
  static const std::vector<Half> table = [] {
    std::vector<Half> all;
    for (std::uint32_t bits = 0; bits <= UINT16_MAX; ++bits)
      all.push_back(Half(activated(float(Half::from_bits(std::uint16_t(bits))))));
    return all;
  }();
  return table;
}

bool is_published(const Arguments& a, const std::vector<std::int64_t>& alive) {
  fmt::print("alive: {}\n", fmt::join(alive, " "));
  const bool right = alive == published(a);
  fmt::print("{}\n", right ? "PASS: the published images" : "FAIL: not the published images");
  return right;
}

}  // namespace tessera::examples
