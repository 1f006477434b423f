#include "tessera/bench/host/few_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/host/dense_rows.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t kX = 4096, kY = 11008;

// A dense bfloat16 product with one column, on all threads of an executor.
class DenseProduct {
 public:
  explicit DenseProduct(Executor& executor)
      : executor_(executor),
        r_(std::size_t(kX * kY), BFloat16(0.5f)),
        s_(std::size_t(kY), BFloat16(1.0f)),
        q_(std::size_t(kX)) {
    run();
    if (q_.front() != 0.5f * float(kY) || q_.back() != q_.front())
      throw std::runtime_error("the dense product is wrong");
  }
  void run() {
    constexpr std::int64_t kRows = 64;
    executor_.for_each(kX / kRows, [&](std::int64_t i) {
      multiply_dense_rows(r_.data() + i * kRows * kY, kRows, kY, s_.data(), q_.data() + i * kRows);
    });
  }
  static double bytes() { return double(kX * kY) * sizeof(BFloat16); }

 private:
  Executor& executor_;
  AlignedVector<BFloat16> r_, s_;
  std::vector<float> q_;
};

// One layer in the form that the forecast chooses and, as it also has GradW, in cells.
template <class T>
class FewColumns {
 public:
  FewColumns(double density, std::int64_t z, Executor& executor)
      : chosen_(problem(density, z, false), host::read_host_cpu(), executor),
        cells_(problem(density, z, true), host::read_host_cpu(), executor),
        s_(random_matrix<T>(kY, z, 2)),
        q_(kX, z),
        q_cells_(kX, z) {
    const sparse::Csr<float> w = sparse::random_pattern(kX, kY, {1, 1}, density, 1);
    chosen_.set_weights(w);
    cells_.set_weights(w);
    run();
    run_cells();
    // Sums of random signs are near 0, so differences are compared with the size of the results.
    double largest = 0, worst = 0;
    for (std::int64_t x = 0; x < kX; ++x)
      for (std::int64_t j = 0; j < z; ++j) {
        largest = std::max(largest, std::abs(double(float(q_cells_(x, j)))));
        worst = std::max(worst, std::abs(double(float(q_(x, j))) - float(q_cells_(x, j))));
      }
    if (worst > 0.02 * largest) throw std::runtime_error("a layer with few columns is wrong");
  }
  void run() { chosen_.forward<T>(std::as_const(s_).view(), q_.view()); }
  void run_cells() { cells_.forward<T>(std::as_const(s_).view(), q_cells_.view()); }
  bool is_packed() const { return chosen_.is_packed(Pass::Fwd); }

 private:
  static Problem problem(double density, std::int64_t z, bool trains) {
    return {.size = {1, kX, kY, z},
            .density = density,
            .data_type = data_type_of<T>(),
            .grad_w = trains};
  }
  host::HostLayer chosen_, cells_;
  Matrix<T> s_, q_, q_cells_;
};

// Returns the medians of wall times of bodies that run in turns.
std::vector<double> wall_medians(const std::vector<std::function<void()>>& bodies, int repeats) {
  std::vector<std::vector<double>> times(bodies.size());
  for (int i = 0; i < repeats; ++i)
    for (std::size_t b = 0; b < bodies.size(); ++b)
      times[b].push_back(seconds(bodies[b], Clock::Wall));
  std::vector<double> medians;
  for (std::vector<double>& of : times) {
    std::nth_element(of.begin(), of.begin() + std::ssize(of) / 2, of.end());
    medians.push_back(of[of.size() / 2]);
  }
  return medians;
}

struct DensityBar {
  double density, at_least;  // with one column
};

template <class T>
bool print_rows(const DensityBar& bar, Executor& executor, DenseProduct& dense) {
  constexpr int kRepeats = 15;
  bool all = true;
  for (const std::int64_t z : {1, 4, 16}) {
    FewColumns<T> layer(bar.density, z, executor);
    const std::vector<double> t = wall_medians(
        {[&] { dense.run(); }, [&] { layer.run(); }, [&] { layer.run_cells(); }}, kRepeats);
    const double ratio = t[0] / t[1];
    const bool has_bar = z == 1, is_met = !has_bar || ratio >= bar.at_least;
    fmt::print("| {} | {} | {} | {} | {:.2f} | {:.2f} | {:.1f} | {:.2f} | {} | {} |\n",
               to_string(data_type_of<T>()), bar.density, z, layer.is_packed() ? "packed" : "cells",
               1e3 * t[1], 1e3 * t[2], DenseProduct::bytes() / t[0] / 1e9, ratio,
               has_bar ? fmt::format(">= {}", bar.at_least) : "",
               has_bar ? (is_met ? "ok" : "short") : "");
    std::fflush(stdout);
    all &= is_met;
  }
  return all;
}

}  // namespace

bool run_few_columns_bars() {
  const auto executor = make_executor();
  DenseProduct dense(*executor);
  fmt::print(
      "{} x {}, {} threads; dense: one column, bfloat16.\n\n"
      "| type | density | z | form | ms | ms in cells | dense GB/s | dense by layer | bar | |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
      kX, kY, executor->threads());
  bool all = true;
  for (const DensityBar& bar : {DensityBar{0.5, 1.5}, {0.25, 2.5}, {0.1, 5}}) {
    all &= print_rows<BFloat16>(bar, *executor, dense);
    all &= print_rows<Half>(bar, *executor, dense);
  }
  return all;
}

}  // namespace tessera::bench
