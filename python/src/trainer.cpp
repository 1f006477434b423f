#include "tessera/python/src/trainer.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/named.hpp"
#include "tessera/base/process.hpp"
#include "tessera/base/stopwatch.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/interrupt.hpp"
#include "tessera/python/src/method.hpp"
#include "tessera/python/src/rewire.hpp"
#include "tessera/train/trainer.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

// A network with its data, shared with a thread that an interrupted caller left running.
struct Session {
  Session(train::DataSet images, const train::NetworkOptions& network_options, int threads)
      : data(std::move(images)),
        executor(make_executor(threads)),
        network(network_options, train::host_layers(*executor, network_options.density_changes),
                *executor) {}

  train::DataSet data;
  std::unique_ptr<Executor> executor;
  train::Network<> network;
  std::unique_ptr<train::Trainer> trainer;
  OfProcess<std::mutex> mutex;  // of everything above
};

train::LabelledImages images_of(const py::array_t<std::uint8_t>& pixels,
                                const py::array_t<std::uint8_t>& labels) {
  return {.rows = 1,
          .cols = pixels.shape(1),
          .pixels = {pixels.data(), pixels.data() + pixels.size()},
          .labels = {labels.data(), labels.data() + labels.size()}};
}

// The density at which a run ends, and the curve from that of the network to it.
struct Densities {
  double last = 0;
  train::DensityCurve curve = {};
};

class Trainer {
 public:
  using Pixels = py::array_t<std::uint8_t>;

  Trainer(const Pixels& x, const Pixels& y, const Pixels& test_x, const Pixels& test_y,
          const train::NetworkOptions& network, const train::Method& method, std::int64_t epochs,
          double rate, double fraction, std::int64_t every,
          const std::optional<Densities>& densities, int threads) {
    train::DataSet data{images_of(x, y), images_of(test_x, test_y)};
    const py::gil_scoped_release release;
    const DefaultFloatMode mode;
    const Stopwatch watch;
    // A network that no run can be made of is refused before memory for it is asked for.
    train::spec_of(network);
    const std::int64_t steps =
        epochs * train::Batches(data.training, network.batch, network.seed).count();
    session_ = std::make_shared<Session>(std::move(data), network, threads);
    train::TrainOptions options = train::usual_options(method, steps, rate);
    options.schedule.fraction = fraction;
    options.schedule.every = every;
    options.seed = network.seed;
    if (densities)
      options.density =
          train::usual_densities(network.density, densities->last, steps, densities->curve);
    session_->trainer =
        std::make_unique<train::Trainer>(session_->network, session_->data, options);
    setup_seconds_ = watch.seconds();
  }

  // Runs one epoch, or the rest of one that was interrupted.
  py::dict epoch() {
    run_interruptibly([session = session_](std::stop_token stop) {
      const std::lock_guard lock(session->mutex.get());
      session->trainer->epoch(std::move(stop));
    });
    const py::gil_scoped_release release;
    const std::lock_guard lock(session_->mutex.get());
    const train::EpochFigures last = session_->trainer->report().epochs.back();
    const py::gil_scoped_acquire acquire;
    return py::dict("epoch"_a = last.epoch, "loss"_a = last.loss, "accuracy"_a = last.accuracy,
                    "test_loss"_a = last.test_loss, "test_accuracy"_a = last.test_accuracy,
                    "seconds"_a = last.seconds);
  }

  // Returns the seconds that the trainer in C++ took to be made, from data in memory.
  double setup_seconds() const { return setup_seconds_; }

  std::int64_t layers() const { return session_->network.layers(); }

  // Returns ((indptr, indices, data), shape, bias) of a layer.
  py::tuple layer(std::int64_t i) {
    const auto [weights, bias] = [&] {
      const py::gil_scoped_release release;
      const std::lock_guard lock(session_->mutex.get());
      return std::pair(session_->network.weights(i), session_->network.state(i).bias);
    }();
    return py::make_tuple(arrays_from_csr(weights), py::make_tuple(weights.rows, weights.cols),
                          py::array_t<float>(py::ssize_t(bias.size()), bias.data()));
  }

 private:
  std::shared_ptr<Session> session_;
  double setup_seconds_ = 0;
};

}  // namespace
}  // namespace tessera::python

template <>
struct pybind11::detail::type_caster<tessera::python::Trainer>
    : tessera::python::MadeCaster<tessera::python::Trainer> {};

namespace tessera::python {
namespace {

std::unique_ptr<Trainer> make_trainer(const Trainer::Pixels& x, const Trainer::Pixels& y,
                                      const Trainer::Pixels& test_x, const Trainer::Pixels& test_y,
                                      std::vector<std::int64_t> sizes, const std::string& method,
                                      double density, const std::string& density_schedule,
                                      double first_density, const std::string& distribution,
                                      std::int64_t min_per_neuron, std::int64_t block,
                                      std::int64_t batch, std::int64_t epochs, double rate,
                                      double fraction, std::int64_t every, std::uint64_t seed,
                                      int threads) {
  std::optional<Densities> densities;
  if (!density_schedule.empty())
    densities = {density, named(density_schedule, train::kDensityCurves, "density_schedule")};
  const train::NetworkOptions network = {
      .sizes = std::move(sizes),
      .density = densities ? first_density : density,
      .distribution = named(distribution, train::kDistributions, "distribution"),
      .block = {block, block},
      .batch = batch,
      .seed = seed,
      .min_per_neuron = min_per_neuron,
      .density_changes = densities.has_value()};
  return std::make_unique<Trainer>(x, y, test_x, test_y, network, train::parse_method(method, {}),
                                   epochs, rate, fraction, every, densities, threads);
}

}  // namespace

void add_trainer(py::module_& module) {
  py::class_<Trainer>(module, "_Trainer")
      .def(py::init(&make_trainer), "x"_a, "y"_a, "test_x"_a, "test_y"_a, "sizes"_a, "method"_a,
           "density"_a, "density_schedule"_a, "first_density"_a, "distribution"_a,
           "min_per_neuron"_a, "block"_a, "batch"_a, "epochs"_a, "rate"_a, "fraction"_a, "every"_a,
           "seed"_a, "threads"_a)
      .def("epoch", &Trainer::epoch)
      .def("setup_seconds", &Trainer::setup_seconds)
      .def("layers", &Trainer::layers)
      .def("layer", &Trainer::layer, "index"_a);
}

}  // namespace tessera::python
