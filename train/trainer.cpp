#include "tessera/train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/base/stopwatch.hpp"
#include "tessera/train/internal/checks.hpp"
#include "tessera/train/internal/layer_rewire.hpp"
#include "tessera/train/internal/option_text.hpp"

namespace tessera::train {
namespace {

void copy_columns(MatrixView<const float> all, Range columns, MatrixView<float> own) {
  for (std::int64_t row = 0; row < own.rows; ++row)
    std::copy_n(all.row(row) + columns.begin, columns.size(), own.row(row));
}

double share_ever_active(const std::vector<EverActive>& layers) {
  std::int64_t active = 0, all = 0;
  for (const EverActive& layer : layers) {
    active += layer.count();
    all += layer.places();
  }
  return double(active) / double(all);
}

// Adds the stored weights of each input of a layer, whose outputs and inputs may be fewer than
// those of whole blocks.
void count_per_input(const sparse::Csr<float>& weights, std::int64_t outputs,
                     std::span<std::int32_t> stored) {
  const BlockShape block = weights.block;
  for (std::int64_t row = 0; row < weights.block_rows(); ++row) {
    const auto rows = std::int32_t(std::min(block.rows, outputs - row * block.rows));
    for (std::int64_t i = weights.row_begin[std::size_t(row)];
         i < weights.row_begin[std::size_t(row) + 1]; ++i) {
      const std::int64_t begin = weights.col[std::size_t(i)] * block.cols;
      for (std::int64_t y = begin; y < std::min(begin + block.cols, std::ssize(stored)); ++y)
        stored[std::size_t(y)] += rows;
    }
  }
}

}  // namespace

TrainOptions usual_options(const Method& method, std::int64_t steps, double rate) {
  return {.method = method,
          .schedule = {.end = steps * 3 / 4},
          .rate = {.first = rate, .decay = CosineRate{std::max<std::int64_t>(steps, 1)}}};
}

DensitySchedule usual_densities(double first, double last, std::int64_t steps, DensityCurve curve) {
  return {
      .first = first, .last = last, .end = std::max<std::int64_t>(steps / 2, 1), .curve = curve};
}

Trainer::Trainer(Network<>& network, const DataSet& data, const TrainOptions& options)
    : network_(&network),
      data_(&data),
      options_((internal::check_training(network, data, options), options)),
      batches_(data.training, network.spec().batch, options.seed, options.normalisation),
      test_(data.test, 1, options.seed, options.normalisation),
      labels_(std::size_t(network.spec().batch)) {
  if (BatchShare* const share = network.share()) {
    share->require_same("options",
                        internal::text_of(network.options()) + internal::text_of(options));
    const auto require_same = [&](const char* what, const std::vector<std::uint8_t>& bytes) {
      share->require_same(what, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    for (const LabelledImages* images : {&data.training, &data.test}) {
      require_same("labels", images->labels);
      require_same("images", images->pixels);
    }
    const std::int64_t batch = network.spec().batch;
    all_inputs_ = Matrix<float>(data.training.features(), batch);
    all_gradients_ = Matrix<float>(network.outputs(), batch);
  }
  static_cast<NetworkState&>(state_) = network.first_state(options.optimiser);
  for (std::int64_t i = 0; i < network.layers(); ++i)
    state_.ever_active.emplace_back(network.weights(i));
  add_rewire({.per_input = std::vector<std::int32_t>(std::size_t(inputs()))});
}

void Trainer::add_rewire(RewireFigures figures) {
  figures.ever_active = share_ever_active(state_.ever_active);
  count_per_input(network_->weights(0), network_->problems()[0].size.x, figures.per_input);
  state_.report.rewires.push_back(std::move(figures));
}

void Trainer::set_state(TrainState state) {
  if (!network_->fits(options_.optimiser, state) ||
      state.ever_active.size() != state.weights.size() || state.report.rewires.empty())
    throw_invalid("training: the state belongs to another network or optimiser");
  state_ = std::move(state);
  pattern_changes_ = {};
}

template <class Load>
void Trainer::load_inputs(Load&& load) {
  const MatrixView<float> own = network_->input(0);
  const BatchShare* const share = network_->share();
  if (share == nullptr) return load(own);
  load(all_inputs_.view());
  copy_columns(all_inputs_.view(), share->columns(), own);
}

Loss Trainer::take_loss(std::int64_t columns) {
  Network<>& net = *network_;
  BatchShare* const share = net.share();
  const MatrixView<float> own = net.output_gradient(net.layers() - 1),
                          gradient = share == nullptr ? own : all_gradients_.view();
  const MatrixView<const float> scores =
      whole_batch(share, net.input(net.layers()), all_scores_, net.spec().batch);
  const Loss loss = cross_entropy(scores.sub({0, scores.rows}, {0, columns}),
                                  std::span(labels_).first(std::size_t(columns)),
                                  {gradient.data, scores.rows, columns, columns});
  if (share != nullptr) copy_columns(gradient, share->columns(), own);
  return loss;
}

void Trainer::step() {
  const DefaultFloatMode mode;
  ActivitySeconds& seconds = state_.report.seconds;
  const std::int64_t done = state_.report.steps, number = done + 1;
  Network<>& net = *network_;
  seconds.measure(Activity::Batch, [&] {
    load_inputs([&](MatrixView<float> s) {
      batches_.load(done / batches_.count(), done % batches_.count(), s, labels_);
    });
  });
  net.forward(timer());
  Loss loss;
  seconds.measure(Activity::Loss, [&] {
    loss = take_loss(net.spec().batch);
    net.check_loss("training: the loss", number, loss.sum);
  });
  net.backward(timer());
  const double fraction = options_.schedule.at(number);
  if (!rewires_at(number))
    step_weights();
  else if (is_instead_of_step(options_.method))
    rewire_all(fraction);
  else
    rewire_after_step(fraction);
  const bool begins_epoch = done % steps_per_epoch() == 0;  // also if nobody called epoch()
  state_.loss_sum = (begins_epoch ? 0 : state_.loss_sum) + loss.sum;
  state_.right = (begins_epoch ? 0 : state_.right) + loss.right;
  state_.report.steps = number;
}

bool Trainer::rewires_at(std::int64_t step) const {
  if (std::holds_alternative<Static>(options_.method) || !options_.schedule.is_due(step))
    return false;
  return options_.schedule.at(step) > 0 || options_.density || ignores_fraction(options_.method);
}

Optimiser Trainer::optimiser_now() const {
  return with_learning_rate(options_.optimiser, options_.rate.at(state_.report.steps + 1));
}

// Returns how many blocks each layer stores after the rewire of now; -1: as many as before.
std::vector<std::int64_t> Trainer::blocks_wanted() const {
  std::vector<std::int64_t> wanted(std::size_t(network_->layers()), -1);
  if (!options_.density) return wanted;
  const NetworkOptions& network = network_->options();
  const std::vector<std::int64_t> blocks =
      blocks_at(network, options_.density->at(state_.report.steps + 1));
  const bool last_is_dense =
      network.distribution == Distribution::Uniform && network_->layers() > 1;
  const auto changing = std::size_t(network_->layers()) - std::size_t(last_is_dense);
  std::copy_n(blocks.begin(), changing, wanted.begin());
  return wanted;
}

// The timer refers to the run alone, so no copy of it allocates.
WorkTimer Trainer::timer() {
  return [this](planner::NetworkWork work, std::int64_t, double seconds) {
    state_.report.seconds[activity_of(work)] += seconds;
  };
}

void Trainer::step_weights() { network_->update(optimiser_now(), state_, timer()); }

// A rewire that fails takes the optimiser's step back.
void Trainer::rewire_after_step(double fraction) {
  std::vector<ValueState<float>> weights = state_.weights, biases = state_.biases;
  std::vector<std::vector<float>> values, bias;
  for (std::int64_t i = 0; i < network_->layers(); ++i) {
    values.push_back(network_->weights(i).values);
    bias.push_back(network_->state(i).bias);
  }
  step_weights();
  try {
    rewire_all(fraction);
  } catch (...) {
    state_.weights.swap(weights);
    state_.biases.swap(biases);
    for (std::int64_t i = 0; i < network_->layers(); ++i) {
      network_->state(i).layer().set_values(values[std::size_t(i)]);
      network_->state(i).bias.swap(bias[std::size_t(i)]);
    }
    throw;
  }
}

// Computes everything beside the old state and then puts it in place.
void Trainer::rewire_all(double fraction) {
  const Stopwatch watch;
  RewireFigures figures{.step = state_.report.steps + 1,
                        .fraction = fraction,
                        .per_input = std::vector<std::int32_t>(std::size_t(inputs()))};
  const internal::RewireStep now{options_, optimiser_now(), figures.step, fraction};
  const std::vector<std::int64_t> wanted = blocks_wanted();
  std::vector<internal::LayerRewire> layers;
  std::vector<layer::PreparedUpdate> updates;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    layers.push_back(
        internal::rewire_layer(*network_, std::int64_t(i), wanted[i], now, state_.weights[i]));
    updates.push_back(std::move(layers.back().update));
    figures.moved += std::ssize(layers.back().rewired.change.added);
  }
  state_.report.rewires.reserve(state_.report.rewires.size() + 1);
  network_->commit(std::move(updates));  // nothing below throws
  bool changes = false;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const sparse::PatternChange& change = layers[i].rewired.change;
    std::swap(state_.weights[i], layers[i].state);
    state_.ever_active[i].add(change.added);
    layers[i].set_first_values(network_->state(std::int64_t(i)).layer());
    changes = changes || !change.added.empty() || !change.removed.empty();
  }
  figures.seconds = watch.seconds();
  state_.report.seconds[Activity::Rewire] += figures.seconds;
  pattern_changes_.rewires += changes;
  if (changes) pattern_changes_.seconds += figures.seconds;
  add_rewire(std::move(figures));
}

Loss Trainer::evaluate() {
  const DefaultFloatMode mode;
  Network<>& net = *network_;
  Loss all;
  for (std::int64_t begin = 0; begin < data_->test.count(); begin += net.spec().batch) {
    std::int64_t count = 0;
    load_inputs([&](MatrixView<float> s) { count = test_.load_in_order(begin, s, labels_); });
    net.forward();  // counted as evaluation
    const Loss part = take_loss(count);
    all.sum += part.sum;
    all.right += part.right;
  }
  return all;
}

bool Trainer::epoch(std::stop_token stop, const std::function<void(std::int64_t)>& progress) {
  const DefaultFloatMode mode;
  TrainReport& report = state_.report;
  BatchShare* const share = network_->share();
  // An epoch whose steps are all made, by step() or before an evaluation that failed, is only
  // evaluated.
  const std::int64_t evaluated = report.epochs.empty() ? 0 : report.epochs.back().epoch;
  while (report.steps % steps_per_epoch() != 0 || report.steps / steps_per_epoch() == evaluated) {
    const bool ends = stop.stop_requested();
    if (share == nullptr ? ends : share->any(ends)) return false;
    step();
    if (progress) progress(report.steps);
  }
  EpochFigures figures{.epoch = report.steps / steps_per_epoch()};
  report.seconds.measure(Activity::Evaluation, [&] {
    const Loss test = evaluate();
    network_->check_loss("training: the test loss", report.steps, test.sum);
    figures.test_loss = test.sum / double(data_->test.count());
    figures.test_accuracy = double(test.right) / double(data_->test.count());
  });
  const double images = double(steps_per_epoch() * network_->spec().batch);
  figures.loss = state_.loss_sum / images;
  figures.accuracy = double(state_.right) / images;
  figures.seconds = report.seconds.sum();
  report.epochs.push_back(figures);
  state_.loss_sum = 0;
  state_.right = 0;
  return true;
}

}  // namespace tessera::train
