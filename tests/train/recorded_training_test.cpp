// Compares short runs of drawn networks, options and data with a table: what is refused with which
// message, and else the spec, the first and the last patterns, and the figures of the run. Which
// block a rule moves, and what a rewire costs on a machine, is right in many ways, so no other test
// sees each of them. When they are meant to change, the table is written again with
//   TESSERA_RECORD=new.tsv build/release/tests/train/train_tests
//   --gtest_filter='RecordedTraining.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/planner/network.hpp"
#include "tessera/tests/support/recorded.hpp"
#include "tessera/tests/train/training_case.hpp"
#include "tessera/train/internal/option_text.hpp"
#include "tessera/train/machine_step.hpp"
#include "tessera/train/modelled_machine.hpp"

namespace tessera::train {
namespace {

template <class List>
auto one_of(const List& list, Random& random) {
  return std::data(list)[std::size_t(random.below(std::int64_t(std::size(list))))];
}

bool one_in(std::int64_t count, Random& random) { return random.below(count) == 0; }

NetworkOptions draw_network(Random& random) {
  constexpr BlockShape kBlocks[] = {{1, 1}, {1, 1}, {2, 2}, {4, 4}, {3, 5}};
  NetworkOptions options{.sizes = {20},
                         .density = 0.15 + 0.5 * random.unit(),
                         .distribution = one_of(kDistributions, random),
                         .block = one_of(kBlocks, random),
                         .batch = 5 + random.below(30),
                         .seed = std::uint64_t(random.below(1000))};
  for (std::int64_t hidden = random.below(3); hidden > 0; --hidden)
    options.sizes.push_back(6 + random.below(30));
  options.sizes.push_back(3);
  if (one_in(4, random))
    options.min_per_neuron = 1 + random.below(2);
  else
    options.constant_fan_in = one_in(4, random);
  if (one_in(3, random)) options.density_changes = true;
  if (one_in(5, random)) options.density = 1;
  return options;
}

Method draw_method(Random& random) {
  constexpr BlockScore kPools[] = {BlockScore::Sum, BlockScore::Max, BlockScore::Mean};
  constexpr Exclude kExcludes[] = {Exclude::Kept, Exclude::Original};
  constexpr Search kSearches[] = {Search::Exact, Search::Shortlist, Search::Sampled};
  const Exclude exclude = one_of(kExcludes, random);
  const BlockScore pool = one_of(kPools, random);
  const double factor = 0.5 + 3 * random.unit();
  const std::vector<Method> methods = {Method(Static{}),
                                       Method(Set{exclude}),
                                       Method(RigL{pool, exclude}),
                                       Method(Sampled{factor, pool, exclude}),
                                       Method(Prune{}),
                                       Method(TopK{one_of(kSearches, random), factor})};
  return one_of(methods, random);
}

TrainOptions draw_training(const NetworkOptions& network, Random& random) {
  const std::vector<Rule> rules = {Sgd{0.02, 0.5},      Adam{0.003}, AdaGrad{0.02},
                                   Nesterov{0.02, 0.8}, TorchSgd{},  AdamW{0.004}};
  constexpr FractionDecay kDecays[] = {FractionDecay::Cosine, FractionDecay::Linear,
                                       FractionDecay::Constant};
  // Compilers order the arguments of a call as they like, so each draw is a statement.
  const double rate = 0.02 + 0.1 * random.unit();
  const Method method = draw_method(random);
  TrainOptions options = usual_options(method, 20, rate);
  options.schedule.every = 1 + random.below(4);
  options.schedule.begin = 1 + random.below(6);
  options.schedule.fraction = 0.5 * random.unit();
  options.schedule.decay = one_of(kDecays, random);
  options.optimiser.rule = one_of(rules, random);
  const bool may_decay = options.optimiser.rule.index() != 2 && options.optimiser.rule.index() != 5;
  options.optimiser.weight_decay = may_decay ? 0.01 * random.unit() : 0;
  options.rate.warm_up = random.below(4);
  if (one_in(3, random)) options.rate.decay = StepRate{1 + random.below(5), 0.5};
  options.seed = std::uint64_t(random.below(1000));
  if (network.density_changes)
    options.density = DensitySchedule{.first = network.density,
                                      .last = network.density * (0.3 + 0.6 * random.unit()),
                                      .begin = random.below(4),
                                      .end = 8 + random.below(4),
                                      .curve = one_of(kDensityCurves, random)};
  return options;
}

std::string text_of(const planner::NetworkSpec& spec) {
  std::string text;
  for (const Problem& problem : problems_of(spec)) text += to_string(problem) + "; ";
  return text;
}

std::string patterns_of(const Trainer& trainer) {
  tessera::test::Digest digest;
  for (std::int64_t i = 0; i < trainer.network().layers(); ++i) {
    const sparse::Csr<float>& weights = trainer.network().weights(i);
    digest.add(
        fmt::format("{} {}", fmt::join(weights.row_begin, " "), fmt::join(weights.col, " ")));
  }
  return digest.text();
}

// The report without what is measured. Four digits: the last ones depend on the C library.
std::string text_of(const TrainReport& report) {
  std::string text;
  for (const EpochFigures& e : report.epochs)
    text += fmt::format("{} {:.4g} {:.3f} {:.4g} {:.3f};", e.epoch, e.loss, e.accuracy, e.test_loss,
                        e.test_accuracy);
  for (const RewireFigures& r : report.rewires)
    text += fmt::format(" {} {:.6f} {} {:.6f} {};", r.step, r.fraction, r.moved, r.ever_active,
                        fmt::join(r.per_input, " "));
  return text;
}

// One epoch, and a few steps of the next one, which no evaluation ends.
std::string run(Trainer& trainer) {
  const std::string first = patterns_of(trainer);
  trainer.epoch();
  for (int step = 0; step < 3; ++step) trainer.step();
  return fmt::format("{} {} {:.4g} {} {}", first, patterns_of(trainer), trainer.state().loss_sum,
                     trainer.state().right, text_of(trainer.report()));
}

// Every third run is one on a modelled machine, which has the figures of its last step.
std::string run(std::int64_t number, const NetworkOptions& shape, const TrainOptions& options,
                const DataSet& data, const ModelledMachine& machine, Executor& executor) {
  if (number % 3 != 0) {
    Network<> network(shape, host_layers(executor), executor);
    Trainer trainer(network, data, options);
    std::string text = text_of(network.spec());
    return text += run(trainer);
  }
  Network<> network(shape, machine.layers(executor), executor);
  Trainer trainer(network, data, options);
  std::string text = text_of(network.spec());
  text += run(trainer);
  std::optional<MachineStep> step = machine_step(trainer, machine);
  if (!step) return text + " no step";
  if (step->update) step->update->host_seconds = 1;  // measured
  return text + to_text(*step) + to_json(*step);
}

TEST(RecordedTraining, OfDrawnNetworksIsAsRecorded) {
  tessera::test::RecordedTable table("recorded_training.tsv", "run");
  const auto executor = make_executor(2);
  const ModelledMachine machine("gc200");
  const DataSet data{tessera::test::three_classes(140, 1), tessera::test::three_classes(40, 2)};
  Random random(501);
  for (int number = 0; number < tessera::test::trials(150); ++number) {
    const NetworkOptions network = draw_network(random);
    const TrainOptions options = draw_training(network, random);
    std::string text = internal::text_of(network) + internal::text_of(options), kind = "runs";
    try {
      text += run(number, network, options, data, machine, *executor);
    } catch (const Error& error) {
      kind = "refused";
      text += error.what();
    }
    tessera::test::Digest digest;
    digest.add(text);
    table.expect(number, kind + '\t' + digest.text(), text);
  }
}

TEST(RecordedTraining, HasATestForEachKind) {
  tessera::test::expect_kinds("recorded_training.tsv", {"run"});
}

}  // namespace
}  // namespace tessera::train
