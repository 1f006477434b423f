#include "tessera/examples/graph_challenge_host.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/host/layer.hpp"

namespace tessera::examples {
namespace {

// Seconds of processor time on one thread, so that other programs on this computer do not count;
// seconds of wall time on several threads.
double seconds_now(const Executor& executor) {
  timespec now{};
  clock_gettime(executor.threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// As many images as a panel of the host layer has columns: the operand of a layer then stays in L2.
constexpr std::int64_t kPanel = 64;

// Seconds of the parts of a run on this computer, and the work that they did.
struct HostRun {
  double encode = 0, forward = 0, activate = 0;
  double flops = 0;  // of the network with all images
  double done = 0;   // of the images that were left

  double seconds() const { return encode + forward + activate; }
};

// The images on this computer, one image a column, in panels that follow each other in memory. The
// last panel is filled up with columns of 0. An image without any value above 0 stays so, as the
// bias is below 0: another image takes its place, and later layers have fewer panels.
template <class T>
class Images {
 public:
  Images(const Matrix<T>& images, Executor& executor)
      : executor_(&executor),
        ids_(std::size_t(round_up(images.cols(), kPanel))),
        seen_(ids_.size()),
        panels_(std::size_t(kNeurons) * ids_.size()),
        product_(std::size_t(kNeurons * kPanel)) {
    std::iota(ids_.begin(), ids_.end(), 1);
    for (std::int64_t row = 0; row < kNeurons; ++row)
      for (std::int64_t z = 0; z < images.cols(); ++z)
        panels_[std::size_t(place(z) + row * kPanel)] = images(row, z);
  }
  std::int64_t width() const { return std::ssize(ids_); }
  // Numbers of the images that are alive, counted from 1, ascending.
  std::vector<std::int64_t> alive() const {
    std::vector<std::int64_t> result;
    for (std::size_t z = 0; z < ids_.size(); ++z)
      if (seen_[z] != 0) result.push_back(ids_[z]);
    std::sort(result.begin(), result.end());
    return result;
  }

  // Runs all images through a layer with its bias and cap. Returns the number of values above 0.
  std::int64_t pass(host::HostLayer& layer, HostRun& run) {
    std::int64_t above = 0;
    for (std::int64_t first = 0; first < width(); first += kPanel) {
      T* const panel = panels_.data() + place(first);
      const double start = seconds_now(*executor_);
      layer.forward<T>(view(panel), view(product_.data()));
      const double multiplied = seconds_now(*executor_);
      // The product was just written, so it is still in the cache, like the images it came from.
      above += activate_panel(panel, seen_.data() + first);
      run.forward += multiplied - start;
      run.activate += seconds_now(*executor_) - multiplied;
    }
    const double start = seconds_now(*executor_);
    drop_dead();
    run.activate += seconds_now(*executor_) - start;
    return above;
  }

 private:
  using Bits = decltype(bits_of(T()));

  // Index in panels_ of an image's first neuron.
  static std::int64_t place(std::int64_t z) { return z / kPanel * kPanel * kNeurons + z % kPanel; }
  static MatrixView<T> view(T* panel) { return {panel, kNeurons, kPanel, kPanel, 1}; }

  std::int64_t activate_panel(T* to, Bits* seen) {
    const std::int64_t above = activate<T>(product_.data(), std::ssize(product_), to);
    std::fill_n(seen, kPanel, Bits());
    for (std::int64_t row = 0; row < kNeurons; ++row, to += kPanel)
      for (std::int64_t z = 0; z < kPanel; ++z) seen[z] |= bits_of(to[z]);
    return above;
  }

  // If fewer panels are enough, images of the last panels move to the places of dead images.
  void drop_dead() {
    const std::int64_t dead = std::count(seen_.begin(), seen_.end(), Bits());
    const std::int64_t left = round_up(width() - dead, kPanel);
    std::vector<std::pair<std::int64_t, std::int64_t>> moves;  // from, to
    std::int64_t hole = 0;
    for (std::int64_t z = left; z < width(); ++z) {
      if (seen_[std::size_t(z)] == 0) continue;
      while (seen_[std::size_t(hole)] != 0) ++hole;
      moves.emplace_back(place(z), place(hole));
      seen_[std::size_t(hole)] = seen_[std::size_t(z)];
      ids_[std::size_t(hole)] = ids_[std::size_t(z)];
    }
    seen_.resize(std::size_t(left));
    ids_.resize(std::size_t(left));
    executor_->for_each(kNeurons, [&](std::int64_t row) {
      T* const values = panels_.data() + row * kPanel;
      for (const auto& [from, to] : moves) values[to] = values[from];
    });
  }

  Executor* executor_;
  std::vector<std::int64_t> ids_;  // numbers of the images, counted from 1
  std::vector<Bits> seen_;         // all bits of an image's values, or-ed
  AlignedVector<T> panels_;        // [panel][neuron][kPanel]
  AlignedVector<T> product_;       // of one panel, before bias and cap
};

template <class T>
void run_layer(const Arguments& a, std::int64_t l, host::HostLayer& layer, Images<T>& y,
               Executor& executor, HostRun& run) {
  const HostRun before = run;
  const std::int64_t width = y.width();
  // The file is read before the clock starts, because it is no part of the network.
  const sparse::Csr<float> weights = layer_weights(a, l);
  const double start = seconds_now(executor);
  layer.set_weights(weights);
  run.encode += seconds_now(executor) - start;
  const std::int64_t above = y.pass(layer, run);
  run.done += 2 * double(weights.blocks()) * double(width);
  fmt::print("{:5}  {:14}  {:7}  {:10.3f}  {:11.3f}\n", l, above, width,
             (run.encode - before.encode) * 1e3, (run.forward - before.forward) * 1e3);
}

template <class T>
bool run_typed(const Arguments& a) {
  const Matrix<T> read = read_images<T>(a);
  HostRun run;
  run.flops = 2 * kWeightsPerNeuron * double(kNeurons * kLayers * read.cols());
  const auto executor = make_executor(a.threads);
  Images<T> y(read, *executor);
  host::HostLayer layer({.size = {1, kNeurons, kNeurons, kPanel},
                         .density = kWeightsPerNeuron / kNeurons,
                         .data_type = a.type},
                        host::read_host_cpu(), *executor);
  fmt::print("layer  values above 0  columns  encode, ms  forward, ms\n");
  for (std::int64_t l = 1; l <= kLayers; ++l) run_layer(a, l, layer, y, *executor, run);
  fmt::print(
      "host, {}, {} threads: encoding {:.1f} ms, layers {:.1f} ms, bias and caps {:.1f} ms\n",
      to_string(a.type), executor->threads(), run.encode * 1e3, run.forward * 1e3,
      run.activate * 1e3);
  const double seconds = run.seconds();
  fmt::print(
      "end to end: {:.1f} ms, {:.2f} useful GFLOP/s, {:.3g} edges/s (measured, {}; {:.0f} % of "
      "the products left out, of images that are 0)\n",
      seconds * 1e3, run.flops / seconds * 1e-9, run.flops / 2 / seconds,
      executor->threads() == 1 ? "processor time" : "wall time", 100 * (1 - run.done / run.flops));
  return is_published(a, y.alive());
}

}  // namespace

bool run_on_host(const Arguments& a) {
  return a.type == DataType::Half ? run_typed<Half>(a) : run_typed<float>(a);
}

}  // namespace tessera::examples
