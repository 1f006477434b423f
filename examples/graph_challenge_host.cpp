#include "tessera/examples/graph_challenge_host.hpp"

#include <fmt/format.h>
#include <time.h>

#include <utility>
#include <vector>

#include "tessera/runtime/host_layer.hpp"

namespace tessera::inline v0::examples {
namespace {

// On one thread its own processor time, so that neighbours of this computer do not count; on
// several, wall time.
double seconds_now(const Executor& executor) {
  timespec now{};
  clock_gettime(executor.threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// As many images as a panel of the host layer has columns: what a layer reads then stays in L2.
constexpr std::int64_t kPanel = 64;

// Images on this computer, one a column, with columns of 0 up to whole panels. An image without any
// value above 0 stays so, as the bias is below 0: it leaves, and the layers behind have fewer
// columns.
template <class T>
class Images {
 public:
  explicit Images(const Matrix<T>& images)
      : width_(round_up(images.cols(), kPanel)),
        now_(std::size_t(kNeurons * width_)),
        next_(now_.size()) {
    for (std::int64_t id = 1; id <= images.cols(); ++id) ids_.push_back(id);
    for (std::int64_t row = 0; row < kNeurons; ++row)
      std::copy_n(images.view().row(row), images.cols(), view().row(row));
  }
  std::int64_t width() const { return width_; }
  const std::vector<std::int64_t>& ids() const { return ids_; }
  MatrixView<T> view() { return {now_.data(), kNeurons, width_, width_, 1}; }

  // The images behind a layer, before bias and caps.
  void multiply(runtime::HostLayer& layer) {
    const MatrixView<T> next{next_.data(), kNeurons, width_, width_, 1};
    for (std::int64_t z = 0; z < width_; z += kPanel) {
      const Range neurons{0, kNeurons}, images{z, z + kPanel};
      layer.forward<T>(view().sub(neurons, images), next.sub(neurons, images));
    }
    std::swap(now_, next_);
  }

  void drop_dead(Executor& executor) {
    std::vector<std::uint8_t> is_alive(std::size_t(width_), 0);
    for (std::int64_t row = 0; row < kNeurons; ++row) {
      const T* const values = view().row(row);
      std::uint8_t* const so_far = is_alive.data();
      for (std::int64_t z = 0, columns = width_; z < columns; ++z)
        so_far[z] = std::uint8_t(so_far[z] | is_above_zero(values[z]));
    }
    std::vector<std::int64_t> kept, kept_ids;
    for (std::size_t z = 0; z < ids_.size(); ++z)
      if (is_alive[z] != 0) kept.push_back(std::int64_t(z)), kept_ids.push_back(ids_[z]);
    const std::size_t before = ids_.size();
    ids_ = std::move(kept_ids);
    if (kept.size() < before) gather(kept, round_up(std::ssize(kept), kPanel), executor);
  }

 private:
  void gather(const std::vector<std::int64_t>& kept, std::int64_t width, Executor& executor) {
    executor.for_each(kNeurons, [&](std::int64_t row) {
      T* const to = next_.data() + row * width;
      const T* const from = view().row(row);
      for (std::size_t z = 0; z < kept.size(); ++z) to[z] = from[kept[z]];
      std::fill(to + kept.size(), to + width, T());
    });
    std::swap(now_, next_);
    width_ = width;
  }

  std::int64_t width_;
  std::vector<T> now_, next_;
  std::vector<std::int64_t> ids_;  // of the first columns, counted from 1
};

// Seconds of the parts of a run on this computer, and what they did.
struct HostRun {
  double encode = 0, forward = 0, activate = 0;
  double flops = 0, done = 0;  // of the network, with all images; of the images that were left

  double seconds() const { return encode + forward + activate; }
};

template <class T>
void run_layer(const Arguments& a, std::int64_t l, runtime::HostLayer& layer, Images<T>& y,
               Executor& executor, HostRun& run) {
  const std::int64_t width = y.width();
  // Read before the clock starts: files are no part of the network.
  const sparse::Csr<float> weights = layer_weights(a, l);
  const double start = seconds_now(executor);
  layer.set_weights(weights);
  const double encoded = seconds_now(executor) - start;
  y.multiply(layer);
  const double multiplied = seconds_now(executor) - start - encoded;
  const std::int64_t above = activate(y.view(), executor);
  y.drop_dead(executor);
  run.activate += seconds_now(executor) - start - encoded - multiplied;
  run.encode += encoded;
  run.forward += multiplied;
  run.done += 2 * double(weights.blocks()) * double(width);
  fmt::print("{:5}  {:14}  {:7}  {:10.3f}  {:11.3f}\n", l, above, width, encoded * 1e3,
             multiplied * 1e3);
}

template <class T>
bool run_typed(const Arguments& a) {
  const Matrix<T> read = read_images<T>(a);
  HostRun run;
  run.flops = 2 * kWeightsPerNeuron * double(kNeurons * kLayers * read.cols());
  Images<T> y(read);
  const auto executor = make_executor(a.threads);
  runtime::HostLayer layer({.size = {1, kNeurons, kNeurons, kPanel},
                            .density = kWeightsPerNeuron / kNeurons,
                            .data_type = a.type},
                           device::read_host_cpu(), *executor);
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
  return is_published(a, y.ids());
}

}  // namespace

bool run_on_host(const Arguments& a) {
  return a.type == DataType::Half ? run_typed<Half>(a) : run_typed<float>(a);
}

}  // namespace tessera::inline v0::examples
