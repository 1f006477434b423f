// Measures Eigen's sparse product for `tessera bench --peers`, as a program of its own, because it
// is built for newer processors than the rest and would otherwise need Eigen in all of tessera.
//
// tessera_peer_eigen FOLDER ROWS COLS Z THREADS PASS reads the files row_begin, col (int32), values
// and in (float) of the folder, writes the result to the file out and prints the seconds of each
// run. PASS "product" is the matrix times `in`. PASS "gradient" is the product of the file grad
// [rows][z] and the transposed `in` at the places of the matrix. Eigen has no function for that:
// it is a dot product of two rows for each place, which is how its users write it.

#include <Eigen/SparseCore>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using Sparse = Eigen::SparseMatrix<float, Eigen::RowMajor, std::int32_t>;
using Dense = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
std::vector<T> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy_n(bytes.data(), values.size() * sizeof(T), reinterpret_cast<char*>(values.data()));
  return values;
}

using DenseMap = Eigen::Map<const Dense>;

// Rows with about as many non-zeros as those of the other threads.
struct Part {
  Eigen::Index row = 0;
  std::int64_t first = 0;  // place in the list of all non-zeros
  Sparse matrix;
};

std::vector<Part> parts_of(const std::string& folder, std::int64_t rows, std::int64_t cols,
                           std::int64_t count) {
  const auto row_begin = read<std::int32_t>(folder + "/row_begin");
  const auto col = read<std::int32_t>(folder + "/col");
  const auto values = read<float>(folder + "/values");
  std::vector<Part> parts;
  std::int64_t row = 0;
  for (std::int64_t i = 1; i <= count; ++i) {
    const std::int64_t until = std::int64_t(col.size()) * i / count;
    std::int64_t end = i == count ? rows : row;
    while (end < rows && row_begin[std::size_t(end)] < until) ++end;
    const std::int32_t first = row_begin[std::size_t(row)];
    std::vector<std::int32_t> begin(row_begin.begin() + row, row_begin.begin() + end + 1);
    for (std::int32_t& at : begin) at -= first;
    parts.push_back({row, first,
                     Eigen::Map<const Sparse>(end - row, cols, begin.back(), begin.data(),
                                              col.data() + first, values.data() + first)});
    row = end;
  }
  return parts;
}

// Calls the function for each part, all at the same time, and prints the seconds of each call.
template <class Run>
void measure(const std::vector<Part>& parts, const Run& run_part) {
  double sum = 0;
  for (int run = -1; run < 3 || (sum < 0.1 && run < 25); ++run) {
    const auto start = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < parts.size(); ++i)
        others.emplace_back(run_part, std::cref(parts[i]));
      run_part(parts.front());
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (run < 0) continue;  // warms the caches
    sum += seconds;
    std::cout << seconds << ' ';
  }
}

std::vector<float> product(const std::vector<Part>& parts, const DenseMap& in, std::int64_t rows) {
  std::vector<float> result(std::size_t(rows * in.cols()));
  measure(parts, [&](const Part& part) {
    // A row-major sparse matrix times a row-major dense one is Eigen's fastest order here.
    Eigen::Map<Dense>(result.data() + part.row * in.cols(), part.matrix.rows(), in.cols())
        .noalias() = part.matrix * in;
  });
  return result;
}

std::vector<float> gradient(const std::vector<Part>& parts, const DenseMap& in,
                            const DenseMap& grad) {
  const Part& last = parts.back();
  std::vector<float> result(std::size_t(last.first + last.matrix.nonZeros()));
  measure(parts, [&](const Part& part) {
    float* out = result.data() + part.first;
    for (Eigen::Index row = 0; row < part.matrix.rows(); ++row)
      for (Sparse::InnerIterator place(part.matrix, row); place; ++place)
        *out++ = grad.row(part.row + row).dot(in.row(place.col()));
  });
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const std::string folder = argv[1];
  const std::int64_t rows = std::atoll(argv[2]), cols = std::atoll(argv[3]);
  const std::int64_t z = std::atoll(argv[4]), threads = std::atoll(argv[5]);
  const std::vector<Part> parts = parts_of(folder, rows, cols, threads);
  const auto operand = read<float>(folder + "/in");
  const DenseMap in(operand.data(), cols, z);
  std::vector<float> result;
  if (std::string(argv[6]) == "gradient") {
    const auto grad = read<float>(folder + "/grad");
    result = gradient(parts, in, DenseMap(grad.data(), rows, z));
  } else {
    result = product(parts, in, rows);
  }
  std::ofstream file(folder + "/out", std::ios::binary);
  file.write(reinterpret_cast<const char*>(result.data()),
             std::streamsize(result.size() * sizeof(float)));
  return file ? 0 : 1;
}
