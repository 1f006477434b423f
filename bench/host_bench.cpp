// Ratios of what the host layer does beside its passes: batches of other widths, operands with the
// batch first, new values, new patterns; small layers on two threads; and layers with few columns
// beside a dense product, on all cores. --bars prints one line for each bar and exits with 1 if one
// is short. Each ratio is one of medians of runs in turns, on one thread unless it says so.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/host/few_columns.hpp"
#include "tessera/bench/host/small_layers.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/gradient_panels.hpp"
#include "tessera/host/gradient_places.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/random.hpp"

namespace {

using namespace tessera;

struct LayerSize {
  std::int64_t x = 4096, y = 4096, z = 128;
  double density = 0.1;
  std::int64_t block = 1;

  std::string name() const {
    return fmt::format("{} x {}, z {}, density {}{}", x, y, z, density,
                       block == 1 ? "" : fmt::format(", block {}", block));
  }
  Problem problem() const {
    return {.size = {1, x, y, z},
            .block = {block, block},
            .density = density,
            .data_type = DataType::Float,
            .grad_a = true,
            .grad_w = true};
  }
  sparse::Csr<float> weights() const {
    return sparse::random_pattern(x, y, {block, block}, density, 3);
  }
};

// A layer of one thread with its operands, features first and batch first.
struct Bench {
  explicit Bench(const LayerSize& given)
      : size(given),
        weights(given.weights()),
        layer(given.problem(), host::read_host_cpu(), *executor),
        s(random_matrix<float>(given.y, given.z, 5)),
        q_grad(random_matrix<float>(given.x, given.z, 6)),
        q(given.x, given.z),
        s_grad(given.y, given.z),
        s_turned(random_matrix<float>(given.z, given.y, 5)),
        q_turned(random_matrix<float>(given.z, given.x, 6)),
        s_grad_turned(given.z, given.y) {
    layer.set_weights(weights);
    gradients.resize(weights.values.size());
  }

  LayerSize size;
  std::unique_ptr<Executor> executor = bench::sequential();
  sparse::Csr<float> weights;
  host::HostLayer layer;
  Matrix<float> s, q_grad, q, s_grad;
  Matrix<float> s_turned, q_turned, s_grad_turned;
  std::vector<float> gradients;

  std::function<void()> forward() {
    return [this] { layer.forward<float>(std::as_const(s).view(), q.view()); };
  }
  std::function<void()> grad_a() {
    return [this] { layer.grad_a<float>(std::as_const(q_grad).view(), s_grad.view()); };
  }
  std::function<void()> grad_w() {
    return [this] {
      layer.grad_w<float>(std::as_const(q_grad).view(), std::as_const(s).view(), gradients);
    };
  }
};

// Prints the ratio of two times; returns true if it is at most the bar.
bool print_ratio(const std::string& name, const std::function<void()>& body,
                 const std::function<void()>& by, double bar) {
  const std::vector<double> times = bench::medians({body, by});
  const double ratio = times[0] / times[1];
  fmt::print("{:<78} {:>8.3f} ms {:>7.3f} {:>7.3f} {}\n", name, times[0] * 1e3, ratio, bar,
             ratio <= bar ? "ok" : "short");
  std::fflush(stdout);
  return ratio <= bar;
}

bool run_width_bars() {
  bool all = true;
  for (const double density : {0.1, 0.02}) {
    const LayerSize size{1024, 784, 128, density};
    Bench wide(size);
    for (const auto& [columns, planned] : {std::pair{96, 96}, {32, 32}, {256, 256}, {50, 50}}) {
      LayerSize own_size = size;
      own_size.z = planned;
      Bench own(own_size);
      const auto s = std::as_const(own.s).view(), q_grad = std::as_const(own.q_grad).view();
      const std::string name =
          fmt::format("{}: {} columns by a layer planned for them, ", size.name(), columns);
      all &= print_ratio(
          name + "Fwd", [&] { wide.layer.forward<float>(s, own.q.view()); }, own.forward(), 1.15);
      all &= print_ratio(
          name + "GradA", [&] { wide.layer.grad_a<float>(q_grad, own.s_grad.view()); },
          own.grad_a(), 1.15);
      all &= print_ratio(
          name + "GradW", [&] { wide.layer.grad_w<float>(q_grad, s, own.gradients); }, own.grad_w(),
          1.15);
    }
  }
  return all;
}

bool run_view_bars() {
  bool all = true;
  for (const LayerSize& size : {LayerSize{1024, 784, 128, 0.1},
                                {1024, 784, 128, 0.02},
                                {4096, 4096, 128, 0.1},
                                {1024, 784, 128, 0.1, 16}}) {
    Bench b(size);
    const auto s = std::as_const(b.s_turned).view().transposed();
    const auto q_grad = std::as_const(b.q_turned).view().transposed();
    Matrix<float> q(size.z, size.x);
    const std::string name = size.name() + ": batch first by features first, ";
    all &= print_ratio(
        name + "Fwd", [&] { b.layer.forward<float>(s, q.view().transposed()); }, b.forward(), 1.25);
    all &= print_ratio(
        name + "GradA", [&] { b.layer.grad_a<float>(q_grad, b.s_grad_turned.view().transposed()); },
        b.grad_a(), 1.25);
    all &= print_ratio(
        name + "GradW", [&] { b.layer.grad_w<float>(q_grad, s, b.gradients); }, b.grad_w(), 1.25);
  }
  return all;
}

bool run_value_bars() {
  bool all = true;
  for (const LayerSize& size : {LayerSize{}, {.block = 16}, {.density = 0.02}}) {
    Bench b(size);
    const std::vector<float> values = b.weights.values;
    all &= print_ratio(
        size.name() + ": set_values by a Fwd pass", [&] { b.layer.set_values(values); },
        b.forward(), 0.5);
    // A step of plain SGD, in two walks over the values and in one.
    std::vector<float> own = values;
    const auto step = [&](std::span<float> part, std::int64_t first) {
      for (std::size_t i = 0; i < part.size(); ++i)
        part[i] -= 0.01f * b.gradients[std::size_t(first) + i];
    };
    all &= print_ratio(
        size.name() + ": a step by change_values by a step and set_values",
        [&] { b.layer.change_values(step); },
        [&] {
          step(own, 0);
          b.layer.set_values(own);
        },
        1.0);
  }
  return all;
}

bool run_weight_bars() {
  bool all = true;
  for (const auto& [size, bar] : {std::pair{LayerSize{}, 3.5}, {LayerSize{.block = 16}, 10.0}}) {
    const auto executor = bench::sequential();
    const sparse::Csr<float> weights = size.weights();
    Problem forward = size.problem();
    forward.grad_a = forward.grad_w = false;
    host::HostLayer alone(forward, host::read_host_cpu(), *executor);
    host::HostLayer layer(size.problem(), host::read_host_cpu(), *executor);
    host::HostLayer other_layer(size.problem(), host::read_host_cpu(), *executor);
    all &= print_ratio(
        size.name() + ": set_weights of all passes by Fwd alone",
        [&] { layer.set_weights(weights); }, [&] { alone.set_weights(weights); }, bar);
    for (const double share : {0.01, 0.1, 0.3}) {
      const auto other = sparse::random_pattern(size.x, size.y, weights.block, size.density, 4);
      sparse::PatternChange change = sparse::difference(weights, other);
      const auto count = std::size_t(share * double(weights.blocks()));
      const auto spread = [&](std::vector<sparse::BlockAt>& places) {
        const std::size_t step = places.size() / std::max<std::size_t>(count, 1);
        for (std::size_t i = 0; i < count; ++i) places[i] = places[i * step];
        places.resize(count);
      };
      spread(change.removed);
      spread(change.added);
      const sparse::PatternChange back{change.added, change.removed};
      bool changed = false;
      all &= print_ratio(
          fmt::format("{}: update_weights of {} % by set_weights", size.name(), share * 100),
          [&] {
            layer.update_weights(changed ? back : change);
            changed = !changed;
          },
          [&] { other_layer.set_weights(weights); }, 1.0);
    }
  }
  return all;
}

bool run_growth_bars() {
  const LayerSize size;
  const auto executor = bench::sequential();
  host::HostLayer dense(size.problem(), host::read_host_cpu(), *executor,
                        {.dense = host::DenseChoice::Always});
  const sparse::Csr<float> weights = size.weights();
  dense.set_weights(weights);
  const Matrix<float> s = random_matrix<float>(size.y, size.z, 5);
  const Matrix<float> q_grad = random_matrix<float>(size.x, size.z, 6);
  std::vector<float> gradients(weights.values.size());
  const std::vector<host::GradientOperands> batches{{q_grad.view(), s.view()}};
  bool all = true;
  for (const host::PanelSize panel : {host::gradient_panel_size(),
                                      {64, 1024},
                                      {256, 512},
                                      {256, 2048},
                                      {256, 4096},
                                      {512, 512},
                                      {1024, 256}}) {
    float sum = 0;
    all &= print_ratio(
        fmt::format("{}: dense gradient in panels of {} x {} by a dense GradW", size.name(),
                    panel.rows, panel.cols),
        [&] {
          host::for_each_gradient_panel(
              panel, batches, *executor,
              [&](const auto&, MatrixView<const float> values) { sum += values(0, 0); });
        },
        [&] { dense.grad_w<float>(q_grad.view(), s.view(), gradients); }, 1.0);
  }
  return all;
}

bool run_sample_bars() {
  const LayerSize size{.density = 0.02};
  Bench b(size);
  const sparse::Csr<float> sample = sparse::random_pattern(size.x, size.y, {}, 0.04, 4);
  std::vector<float> gradients(sample.values.size());
  return print_ratio(
      size.name() + ": gradient at twice as many places by GradW",
      [&] {
        host::gradient_at_places({b.q_grad.view(), b.s.view()},
                                 {sample.block, sample.row_begin, sample.col}, *b.executor,
                                 gradients);
      },
      b.grad_w(), 3.0);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Ratios of what the host layer does beside its passes");
  const std::map<std::string, bool (*)()> groups = {
      {"widths", run_width_bars},       {"views", run_view_bars},
      {"values", run_value_bars},       {"weights", run_weight_bars},
      {"growth", run_growth_bars},      {"samples", run_sample_bars},
      {"small", bench::run_small_bars}, {"few", bench::run_few_columns_bars}};
  std::vector<std::string> wanted;
  app.add_option("--bars", wanted, "print the bars of these groups, or of all")
      ->expected(0, -1)
      ->check(CLI::IsMember(groups));
  CLI11_PARSE(app, argc, argv);
  try {
    bool all = true;
    for (const auto& [name, run] : groups)
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
        all &= run();
    return all ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "host_bench: %s\n", e.what());
    return 1;
  }
}
