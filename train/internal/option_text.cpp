#include "tessera/train/internal/option_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/planner/network_json.hpp"

namespace tessera::train::internal {
namespace {

std::string words_of(const Static&) { return ""; }
std::string words_of(const Set& m) { return fmt::format(" exclude {}", int(m.exclude)); }
std::string words_of(const RigL& m) {
  return fmt::format(" pool {} exclude {}", int(m.pool), int(m.exclude));
}
std::string words_of(const Sampled& m) {
  return fmt::format(" factor {} pool {} exclude {}", m.factor, int(m.pool), int(m.exclude));
}
std::string words_of(const Prune&) { return ""; }
std::string words_of(const TopK& m) {
  return fmt::format(" search {} factor {}", to_string(m.search), m.factor);
}
std::string words_of(const Custom&) { return ""; }

// The learning rate is that of the run.
std::string words_of(Rule rule) {
  std::string words;
  for (const codelets::RuleNumber& one : codelets::numbers_of(rule))
    if (one.name == "beta1")
      words += fmt::format(" beta {}", *one.value);
    else if (one.name == "beta2")
      words += fmt::format(" {}", *one.value);
    else if (one.value != nullptr && one.name != "learning_rate")
      words += fmt::format(" {} {}", one.name, *one.value);
  return words;
}

std::string words_of(const ConstantRate&) { return "constant"; }
std::string words_of(const StepRate& r) { return fmt::format("steps {} {}", r.every, r.factor); }
std::string words_of(const CosineRate& r) { return fmt::format("cosine {}", r.steps); }

template <class Variant>
std::string words_in(const Variant& variant) {
  return std::visit([](const auto& any) { return words_of(any); }, variant);
}

// Returns the words of the fields that every form of options has.
std::string words_of_drawing(const NetworkOptions& o) {
  const std::string fan_in = o.constant_fan_in ? ", constant fan-in" : "";
  const std::string least =
      o.min_per_neuron == 0 ? "" : fmt::format(", {} per neuron", o.min_per_neuron);
  return least + fan_in;
}

}  // namespace

std::string text_of(const NetworkOptions& o) {
  if (o.spec)
    return fmt::format("{}, seed {}{}", planner::to_json(*o.spec), o.seed, words_of_drawing(o));
  // Checkpoints from before there was a choice of types have no word for float.
  const std::string type =
      o.data_type == DataType::Float ? "" : fmt::format(", {}", to_string(o.data_type));
  return fmt::format("{}, density {} {}, block {}x{}, batch {}, seed {}{}{}",
                     fmt::join(o.sizes, ","), o.density, to_string(o.distribution), o.block.rows,
                     o.block.cols, o.batch, o.seed, type, words_of_drawing(o));
}

std::string text_of(const TrainOptions& o) {
  const RewireSchedule& s = o.schedule;
  const std::string densities =
      o.density
          ? fmt::format("; densities {} to {} from {} to {} {}", o.density->first, o.density->last,
                        o.density->begin, o.density->end, to_string(o.density->curve))
          : "";
  return fmt::format(
      "{}{}; rewires {} from {} to {} every {} decay {}; {}{} rescale {} clip {} decay {}; rate {} "
      "{} warm-up {}; pixels {} {}; seed {}{}",
      name_of(o.method), words_in(o.method), s.fraction, s.begin, s.end, s.every, int(s.decay),
      name_of(o.optimiser), words_of(o.optimiser.rule), o.optimiser.rescale,
      o.optimiser.clip ? fmt::format("{}", *o.optimiser.clip) : "none", o.optimiser.weight_decay,
      o.rate.first, words_in(o.rate.decay), o.rate.warm_up, o.normalisation.mean,
      o.normalisation.deviation, o.seed, densities);
}

}  // namespace tessera::train::internal
