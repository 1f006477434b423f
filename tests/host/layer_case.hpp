#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/layer_results.hpp"

namespace tessera::host {

inline const HostCpu kTiny{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};

// A layer with operands.
template <class T>
struct Case {
  Problem problem;
  HostOptions options;
  HostCpu cpu = kTiny;
  std::unique_ptr<Executor> executor = make_executor(2);
  HostLayer layer{problem, cpu, *executor, options};
  Matrix<T> s = random_matrix<T>(problem.size.g * problem.size.y, problem.size.z, 5);
  Matrix<T> q_grad = random_matrix<T>(problem.size.g * problem.size.x, problem.size.z, 6);

  test::Results<T> run() {
    return test::run_passes<T>(layer, std::as_const(s).view(), std::as_const(q_grad).view());
  }
};

template <class T>
Problem problem_of(Dims size, BlockShape block) {
  return {.size = size,
          .block = block,
          .density = 0.2,
          .data_type = data_type_of<T>(),
          .grad_a = true,
          .grad_w = true};
}

inline std::vector<sparse::Csr<float>> weights_of(const Problem& problem, double density,
                                                  std::uint64_t seed) {
  const Dims whole = problem.size_in_blocks();
  std::vector<sparse::Csr<float>> all;
  for (std::int64_t g = 0; g < whole.g; ++g)
    all.push_back(
        sparse::random_pattern(whole.x, whole.y, problem.block, density, seed + std::uint64_t(g)));
  return all;
}

// The change that makes `from` as sparse as `share` of it, plus some new blocks.
inline sparse::PatternChange change_to(const sparse::Csr<float>& from, double density,
                                       std::uint64_t seed) {
  return sparse::difference(
      from, sparse::random_pattern(from.rows, from.cols, from.block, density, seed));
}

}  // namespace tessera::host
