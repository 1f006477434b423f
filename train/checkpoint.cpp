#include "tessera/train/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/io/archive.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/train/internal/option_text.hpp"

namespace tessera::train {
namespace {

constexpr const char* kKind = "a training run";
constexpr io::Archive::Bounds kCounts{0, std::int64_t{1} << 53};

// A layer as it is saved.
struct SavedLayer {
  sparse::Csr<float> weights;  // rows, columns and block are those of the problem
  std::vector<float> bias;
  std::vector<std::vector<float>> states, bias_states;  // of the optimiser
  std::vector<std::uint8_t> ever_active;
};

// A run as it is saved; the fields of `state` by layer are in `layers` instead.
struct SavedRun {
  std::vector<SavedLayer> layers;
  std::int64_t optimiser_steps = 0;
  TrainState state;
};

// Describes a layer. Weights must have their sizes, and the lists of states their number.
void describe(io::Archive& archive, SavedLayer& layer) {
  sparse::Csr<float>& m = layer.weights;
  archive.list("row_begin", m.row_begin, {m.block_rows() + 1});
  archive.list("col", m.col);
  archive.list("values", m.values, {std::ssize(m.col) * m.block.area()});
  archive.list("bias", layer.bias, {std::ssize(layer.bias)});
  for (std::size_t k = 0; k < layer.states.size(); ++k) {
    archive.list(fmt::format("state{}", k + 1), layer.states[k], {std::ssize(m.values)});
    archive.list(fmt::format("bias_state{}", k + 1), layer.bias_states[k],
                 {std::ssize(layer.bias)});
  }
  archive.list("ever_active", layer.ever_active, {ceil_div(m.block_rows() * m.block_cols(), 8)});
}

// Describes a text that must be the same in the run that goes on.
void same(io::Archive& archive, const char* key, const std::string& own) {
  std::string text = own;
  archive.text(key, text);
  if (text != own)
    archive.refuse(
        fmt::format("the checkpoint has {} \"{:.200}\"; this run has \"{}\"", key, text, own));
}

// Describes one figure of all items as a list of `count` numbers, by which the items get their
// number.
template <class Item, class T>
void column(io::Archive& archive, const char* name, std::int64_t count, std::vector<Item>& items,
            T Item::* figure) {
  std::vector<T> list;
  for (const Item& item : items) list.push_back(item.*figure);
  archive.list(name, list, {count});
  items.resize(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) items[i].*figure = list[i];
}

void describe(io::Archive& archive, std::int64_t inputs, TrainReport& report) {
  using E = EpochFigures;
  using R = RewireFigures;
  archive.whole("steps", report.steps, kCounts);
  column(archive, "epochs.epoch", io::Archive::kAnyCount, report.epochs, &E::epoch);
  const std::int64_t epochs = std::ssize(report.epochs);
  column(archive, "epochs.loss", epochs, report.epochs, &E::loss);
  column(archive, "epochs.accuracy", epochs, report.epochs, &E::accuracy);
  column(archive, "epochs.test_loss", epochs, report.epochs, &E::test_loss);
  column(archive, "epochs.test_accuracy", epochs, report.epochs, &E::test_accuracy);
  column(archive, "epochs.seconds", epochs, report.epochs, &E::seconds);
  column(archive, "rewires.step", io::Archive::kAnyCount, report.rewires, &R::step);
  const std::int64_t rewires = std::ssize(report.rewires);
  column(archive, "rewires.fraction", rewires, report.rewires, &R::fraction);
  column(archive, "rewires.moved", rewires, report.rewires, &R::moved);
  column(archive, "rewires.ever_active", rewires, report.rewires, &R::ever_active);
  column(archive, "rewires.seconds", rewires, report.rewires, &R::seconds);
  std::vector<std::int32_t> per_input;
  for (const R& r : report.rewires)
    per_input.insert(per_input.end(), r.per_input.begin(), r.per_input.end());
  archive.list("rewires.per_input", per_input, {rewires, inputs});
  for (std::int64_t i = 0; i < rewires; ++i)
    report.rewires[std::size_t(i)].per_input.assign(per_input.begin() + i * inputs,
                                                    per_input.begin() + (i + 1) * inputs);
  std::vector<double> seconds(report.seconds.of.begin(), report.seconds.of.end());
  archive.list("seconds", seconds, {std::int64_t(kActivities)});
  std::ranges::copy(seconds, report.seconds.of.begin());
}

void describe(io::Archive& archive, const Trainer& trainer, SavedRun& run) {
  same(archive, "network", internal::text_of(trainer.network().options()));
  same(archive, "training", internal::text_of(trainer.options()));
  archive.whole("optimiser_steps", run.optimiser_steps, kCounts);
  archive.number("loss_sum", run.state.loss_sum);
  archive.whole("right", run.state.right, kCounts);
  describe(archive, trainer.network().problems()[0].size.y, run.state.report);
  for (std::size_t i = 0; i < run.layers.size(); ++i)
    archive.within(fmt::format("layer{}", i + 1), [&] { describe(archive, run.layers[i]); });
}

// Throws Error{BadInput} for weights that are not legal, and for places ever stored that are not
// among those of the layer, or miss one that is stored.
void check_layer(const io::Archive& archive, const SavedLayer& layer, std::size_t number) {
  const sparse::Csr<float>& m = layer.weights;
  try {
    sparse::check(m);
  } catch (const Error& error) {
    archive.refuse(fmt::format("layer {}: {}", number, error.what()));
  }
  const EverActive ever(m.block_rows(), m.block_cols(), layer.ever_active), stored(m);
  if (ever.count() > ever.places())
    archive.refuse(fmt::format("layer {}: more places were ever stored than there are", number));
  for (std::size_t i = 0; i < layer.ever_active.size(); ++i)
    if ((stored.bits()[i] & ~layer.ever_active[i]) != 0)
      archive.refuse(fmt::format("layer {}: places {} to {} are stored and were never stored",
                                 number, 8 * i, 8 * i + 7));
}

bool is_share(double number) { return number >= 0 && number <= 1; }

// Throws Error{BadInput} for figures that no run of these options can have at this step.
void check_figures(const io::Archive& archive, const Trainer& trainer, const SavedRun& run) {
  const TrainReport& report = run.state.report;
  const TrainOptions& options = trainer.options();
  const auto require = [&](bool holds, std::string_view what, std::int64_t number) {
    if (!holds)
      archive.refuse(
          fmt::format("{} is {}, which contradicts the {} steps and the options of the "
                      "run",
                      what, number, report.steps));
  };
  std::int64_t before = 0;
  for (const EpochFigures& e : report.epochs) {
    require(e.epoch > before && e.epoch <= report.steps / trainer.steps_per_epoch() &&
                is_share(e.accuracy) && is_share(e.test_accuracy),
            "an epoch", e.epoch);
    before = e.epoch;
  }
  if (report.rewires.empty() || report.rewires.front().step != 0)
    archive.refuse("list rewires.step does not begin with 0, the first patterns");
  before = -1;
  for (const RewireFigures& r : report.rewires) {
    require(r.step > before && r.step <= report.steps && r.moved >= 0 && is_share(r.fraction) &&
                is_share(r.ever_active) && (r.step == 0 || trainer.rewires_at(r.step)),
            "the step of a rewire", r.step);
    before = r.step;
  }
  const std::int64_t rewires = std::ssize(report.rewires) - 1;
  require(run.optimiser_steps + (is_instead_of_step(options.method) ? rewires : 0) == report.steps,
          "the number of optimiser's steps", run.optimiser_steps);
  require(run.state.right <= trainer.steps_per_epoch() * trainer.network().spec().batch,
          "the number of right answers", run.state.right);
}

// Returns a run as it is. Its lists have the sizes of the network, so that a file can be read into
// them.
SavedRun run_of(const Trainer& trainer) {
  const TrainState& state = trainer.state();
  SavedRun run{.layers = {}, .optimiser_steps = state.weights.front().steps, .state = {}};
  run.state.loss_sum = state.loss_sum;
  run.state.right = state.right;
  run.state.report = state.report;
  for (std::size_t i = 0; i < state.weights.size(); ++i)
    run.layers.push_back({trainer.network().weights(std::int64_t(i)),
                          trainer.network().state(std::int64_t(i)).bias, state.weights[i].arrays,
                          state.biases[i].arrays, state.ever_active[i].bits()});
  return run;
}

}  // namespace

std::string checkpoint_of(const Trainer& trainer) {
  SavedRun run = run_of(trainer);
  io::Archive archive(kKind);
  describe(archive, trainer, run);
  return archive.bytes();
}

void restore(Trainer& trainer, std::string_view bytes, std::string_view name) {
  const auto archive = io::Archive::of_bytes(bytes, name, kKind);
  SavedRun run = run_of(trainer);
  describe(*archive, trainer, run);
  archive->finish();
  check_figures(*archive, trainer, run);
  std::vector<sparse::Csr<float>> weights;
  for (SavedLayer& layer : run.layers) {
    check_layer(*archive, layer, weights.size() + 1);
    const sparse::Csr<float>& m = weights.emplace_back(std::move(layer.weights));
    run.state.weights.push_back({run.optimiser_steps, std::move(layer.states)});
    run.state.biases.push_back({run.optimiser_steps, std::move(layer.bias_states)});
    run.state.ever_active.emplace_back(m.block_rows(), m.block_cols(),
                                       std::move(layer.ever_active));
  }
  Network<>& network = trainer.network();
  network.replace(network.layers_with(weights));  // nothing below throws
  for (std::size_t i = 0; i < run.layers.size(); ++i)
    network.state(std::int64_t(i)).bias.swap(run.layers[i].bias);
  trainer.set_state(std::move(run.state));
}

}  // namespace tessera::train
