// Prints, as rows of a Markdown table, what the codelets of networks and attention cost: the cycles
// of their formulas on a tile of gc200 beside the time of one thread of this computer, for the
// share of one tile. Kernels with vectors stand beside their reference kernel; the others have
// none, because they are plain loops. Results are compared with double precision before they are
// timed.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/codelets/activation.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/codelets/cost/softmax_cycles.hpp"
#include "tessera/codelets/loss.hpp"
#include "tessera/codelets/optimiser.hpp"
#include "tessera/codelets/softmax.hpp"
#include "tessera/device/machine.hpp"

namespace {

using namespace tessera;

constexpr std::int64_t kRows = 64, kColumns = 64, kElements = kRows * kColumns;
constexpr int kRepeats = 21, kRunsAtOnce = 50;  // one run takes some microseconds

// The arrays of a codelet. Every run begins with a copy of `given`, so that values neither grow nor
// vanish; the time of the copy is measured alone and taken off.
template <class T>
struct Arrays {
  std::vector<T> given, work, other, out;

  explicit Arrays(std::uint64_t seed)
      : given(std::size_t(kElements)), work(given), other(given), out(given) {
    Random random(seed);
    for (std::vector<T>* array : {&given, &other})
      for (T& value : *array) value = T(float(2 * random.unit() - 1));
  }
  void begin() { std::copy(given.begin(), given.end(), work.begin()); }
};

double nanoseconds_per_element(double seconds, double copying) {
  return 1e9 * std::max(0.0, seconds - copying) / double(kElements * kRunsAtOnce);
}

// Runs the kernel and, if there is one, its reference kernel, and prints their row.
template <class T>
void print_row(const std::string& name, Cycles cycles, Arrays<T>& arrays,
               const std::function<void()>& kernel, const std::function<void()>& reference = {}) {
  const auto many = [&](const std::function<void()>& body) {
    return [&arrays, &body] {
      for (int i = 0; i < kRunsAtOnce; ++i) {
        arrays.begin();
        body();
      }
    };
  };
  const std::function<void()> nothing = [] {};
  std::vector<std::function<void()>> bodies{many(nothing), many(kernel)};
  if (reference) bodies.push_back(many(reference));
  const std::vector<double> seconds = bench::medians(bodies, kRepeats);
  const device::Machine machine = device::machine_preset("gc200");
  const double of_tile = double(cycles.value) / double(kElements);
  const double here = nanoseconds_per_element(seconds[1], seconds[0]);
  const std::string twin =
      reference ? fmt::format("{:.2f}", nanoseconds_per_element(seconds[2], seconds[0])) : "-";
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {} |\n", name,
             sizeof(T) == sizeof(float) ? "float" : "half", of_tile,
             of_tile / machine.clock_hz * 1e9, here, twin);
}

// Ends the program unless the values are within a small multiple of the type's rounding.
template <class T>
void require_close(const std::string& name, const std::vector<T>& got,
                   const std::function<double(std::size_t)>& wanted) {
  const double bound = sizeof(T) == sizeof(float) ? 1e-5 : 4e-3;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(double(float(got[i])) - wanted(i)) <= bound * (1 + std::abs(wanted(i))))) {
      fmt::print(stderr, "{}: element {} is {}, {} was expected\n", name, i, float(got[i]),
                 wanted(i));
      std::exit(1);
    }
}

double activated(codelets::Activation kind, double v) {
  switch (kind) {
    case codelets::Activation::None:
      return v;
    case codelets::Activation::Relu:
      return std::max(v, 0.0);
    case codelets::Activation::Gelu:
      break;
  }
  return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
}

template <class T>
DataType type_of() {
  return sizeof(T) == sizeof(float) ? DataType::Float : DataType::Half;
}

template <class T>
void activations(std::int64_t workers) {
  Arrays<T> a(1);
  const std::vector<float> bias(std::size_t(kRows), 0.25f);
  const codelets::ElementRun run{0, kElements, kColumns};
  for (const auto kind :
       {codelets::Activation::None, codelets::Activation::Relu, codelets::Activation::Gelu}) {
    const codelets::ActivationRule rule{.kind = kind};
    const std::string name = fmt::format("bias, {}", to_string(kind));
    const auto forward = [&] {
      codelets::add_bias_and_activate<T>(run, bias.data(), rule, a.work.data(), a.out.data());
    };
    a.begin();
    forward();
    require_close<T>(name, a.out, [&](std::size_t i) {
      return activated(kind, double(float(T(float(a.given[i]) + 0.25f))));
    });
    print_row<T>(name, codelets::activate_cycles(kElements, kRows, rule, type_of<T>(), workers), a,
                 forward);
    if (kind == codelets::Activation::None) continue;
    print_row<T>(fmt::format("derivative of {}", to_string(kind)),
                 codelets::derivative_cycles(kElements, rule, type_of<T>(), workers), a, [&] {
                   codelets::multiply_by_derivative<T>(kElements, rule, a.other.data(),
                                                       a.work.data());
                 });
  }
  std::vector<float> sums(kRows);
  print_row<T>("sums of rows, for the bias",
               codelets::sum_rows_cycles(kElements, kRows, type_of<T>(), workers), a,
               [&] { codelets::sum_rows<T>(run, a.work.data(), sums.data()); });
}

template <class T>
void losses(std::int64_t workers) {
  Arrays<T> a(2);
  const codelets::LossPart part{kRows, kColumns, kColumns};
  std::vector<std::int32_t> labels(std::size_t(kColumns), 3);
  a.begin();
  codelets::mean_squared_error<T>(part, a.other.data(), a.work.data());
  require_close<T>("mean squared error", a.work, [&](std::size_t i) {
    return 2 * (double(float(a.given[i])) - double(float(a.other[i]))) / double(kElements);
  });
  print_row<T>(
      "softmax cross-entropy and gradient",
      codelets::loss_cycles(part, codelets::Loss::SoftmaxCrossEntropy, type_of<T>(), workers), a,
      [&] { codelets::softmax_cross_entropy<T>(part, labels.data(), a.work.data()); });
  print_row<T>("mean squared error and gradient",
               codelets::loss_cycles(part, codelets::Loss::MeanSquaredError, type_of<T>(), workers),
               a, [&] { codelets::mean_squared_error<T>(part, a.other.data(), a.work.data()); });
}

template <class T>
void updates(std::int64_t workers) {
  using codelets::Rule;
  Arrays<T> a(3);
  std::vector<float> first(kElements), second(kElements);
  float* const both[] = {first.data(), second.data()};
  const std::pair<const char*, Rule> rules[] = {{"sgd", codelets::Sgd{}},
                                                {"momentum", codelets::Sgd{.momentum = 0.9}},
                                                {"adagrad", codelets::AdaGrad{}},
                                                {"adam", codelets::Adam{.learning_rate = 0.01}}};
  for (const auto& [name, rule] : rules) {
    const codelets::Optimiser optimiser{rule};
    const auto count = std::size_t(codelets::states_of(optimiser));
    const std::span<float* const> states = std::span(both).first(count);
    const auto step = [&] {
      codelets::update_values<T>(optimiser, 5, std::span<const T>(a.other), states, a.work.data());
    };
    if (count == 0) {
      a.begin();
      step();
      require_close<T>("sgd", a.work, [&](std::size_t i) {
        return double(float(a.given[i])) - 0.01 * double(float(a.other[i]));
      });
    }
    print_row<T>(fmt::format("step of {}", name),
                 codelets::update_cycles(kElements, optimiser, type_of<T>(), workers), a, step);
  }
}

// Rows of blocks of 16, all of which the mask keeps.
template <class T>
void softmaxes(std::int64_t workers) {
  Arrays<T> a(4);
  constexpr std::int64_t kRun = 16;
  std::vector<std::int32_t> row_begin;
  for (std::int64_t r = 0; r <= kRows; ++r) row_begin.push_back(std::int32_t(r * kColumns));
  const codelets::SoftmaxRows rows{.row_begin = row_begin, .run = kRun, .kept = {}};
  const std::int64_t most = ceil_div(kRows, workers);
  const codelets::SoftmaxWork work{most, most * kColumns / kRun, most * kColumns, 0};
  const auto forward = [&](auto function) {
    return [&, function] { function(rows, a.work.data(), a.out.data()); };
  };
  a.begin();
  codelets::softmax<T>(rows, a.work.data(), a.out.data());
  require_close<T>("softmax", a.out, [&](std::size_t i) {
    const std::size_t first = i / std::size_t(kColumns) * std::size_t(kColumns);
    double sum = 0;
    for (std::size_t c = 0; c < std::size_t(kColumns); ++c)
      sum += std::exp(double(float(a.given[first + c])));
    return std::exp(double(float(a.given[i]))) / sum;
  });
  print_row<T>("softmax over rows", codelets::softmax_cycles(work, type_of<T>(), workers), a,
               forward(&codelets::softmax<T>), forward(&codelets::softmax_reference<T>));
  const auto backward = [&](auto function) {
    return [&, function] { function(rows, a.work.data(), a.other.data(), a.out.data()); };
  };
  print_row<T>(
      "gradient of the softmax", codelets::softmax_gradient_cycles(work, type_of<T>(), workers), a,
      backward(&codelets::softmax_gradient<T>), backward(&codelets::softmax_gradient_reference<T>));
}

template <class T>
void print_all(std::int64_t workers) {
  activations<T>(workers);
  losses<T>(workers);
  updates<T>(workers);
  softmaxes<T>(workers);
}

}  // namespace

int main() {
  const std::int64_t workers = device::machine_preset("gc200").workers;
  fmt::print(
      "| codelet | type | modelled cycles per element | modelled, ns | this computer, ns | "
      "reference kernel, ns |\n| --- | --- | --- | --- | --- | --- |\n");
  print_all<float>(workers);
  print_all<Half>(workers);
}
