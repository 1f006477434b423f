#include "tessera/train/optim/slots.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "tessera/base/half.hpp"

namespace tessera::train {
namespace {

// The numbers of an optimiser, each rounded once to the type of arithmetic.
template <class C>
struct Prepared {
  C rescale, clip, weight_decay;
  bool clips;

  explicit Prepared(const Optimiser& o)
      : rescale(C(o.rescale)),
        clip(C(o.clip.value_or(0))),
        weight_decay(C(o.weight_decay)),
        clips(o.clip.has_value()) {}
  C gradient(C given, C weight) const {
    C g = rescale * given;
    if (clips) g = std::clamp(g, -clip, clip);
    return g + weight_decay * weight;
  }
  C unclipped(C given, C weight) const { return rescale * given + weight_decay * weight; }
};

// Replaces each weight by change(weight, prepared gradient, slot).
template <class W, class Change>
void for_each_slot(const Prepared<SlotType<W>>& prepared, const Slots<W>& slots, Change&& change) {
  using C = SlotType<W>;
  const auto walk = [&](auto gradient_of) {
    for (std::int64_t i = 0; i < slots.count; ++i) {
      const C w = static_cast<C>(slots.weight[i]);
      slots.weight[i] = static_cast<W>(change(w, gradient_of(i, w), i));
    }
  };
  // Three loops without a branch inside, so that compilers vectorise the usual one: a step on 1.7
  // million floats takes as long as the loop a caller would write.
  if (slots.gradient == nullptr)
    walk([&](std::int64_t, C w) { return prepared.gradient(C(0), w); });
  else if (prepared.clips)
    walk([&](std::int64_t i, C w) {
      return prepared.gradient(static_cast<C>(slots.gradient[i]), w);
    });
  else
    walk([&](std::int64_t i, C w) {
      return prepared.unclipped(static_cast<C>(slots.gradient[i]), w);
    });
}

template <class W>
void change_by_rule(const Sgd& rule, std::int64_t, const Prepared<SlotType<W>>& prepared,
                    const Slots<W>& slots) {
  using C = SlotType<W>;
  const C rate = C(rule.learning_rate), momentum = C(rule.momentum);
  if (slots.first == nullptr)
    return for_each_slot(prepared, slots, [&](C w, C g, std::int64_t) { return w - rate * g; });
  for_each_slot(prepared, slots, [&](C w, C g, std::int64_t i) {
    return w + (slots.first[i] = momentum * slots.first[i] - rate * g);
  });
}

// Adam and AdamW; shrunk(w) is the weight after AdamW's decay.
template <class W, class AnyAdam, class Shrunk>
void change_by_adam(const AnyAdam& rule, std::int64_t step, const Prepared<SlotType<W>>& prepared,
                    const Slots<W>& slots, Shrunk&& shrunk) {
  using C = SlotType<W>;
  const double t = double(step);
  const C rate = C(rule.learning_rate * std::sqrt(1 - std::pow(rule.beta2, t)) /
                   (1 - std::pow(rule.beta1, t)));
  const C beta1 = C(rule.beta1), beta2 = C(rule.beta2), epsilon = C(rule.epsilon);
  for_each_slot(prepared, slots, [&](C w, C g, std::int64_t i) {
    C &m = slots.first[i], &v = slots.second[i];
    m = beta1 * m + (C(1) - beta1) * g;
    v = beta2 * v + (C(1) - beta2) * g * g;
    return shrunk(w) - rate * m / (std::sqrt(v) + epsilon);
  });
}

template <class W>
void change_by_rule(const Adam& rule, std::int64_t step, const Prepared<SlotType<W>>& prepared,
                    const Slots<W>& slots) {
  change_by_adam(rule, step, prepared, slots, [](SlotType<W> w) { return w; });
}

template <class W>
void change_by_rule(const AdamW& rule, std::int64_t step, const Prepared<SlotType<W>>& prepared,
                    const Slots<W>& slots) {
  const auto decay = SlotType<W>(rule.learning_rate * rule.decay);
  change_by_adam(rule, step, prepared, slots, [decay](SlotType<W> w) { return w - decay * w; });
}

template <class W>
void change_by_rule(const AdaGrad& rule, std::int64_t, const Prepared<SlotType<W>>& prepared,
                    const Slots<W>& slots) {
  using C = SlotType<W>;
  const C rate = C(rule.learning_rate), epsilon = C(rule.epsilon);
  for_each_slot(prepared, slots, [&](C w, C g, std::int64_t i) {
    C& h = slots.first[i];
    h += g * g;
    return w - rate * g / (std::sqrt(h) + epsilon);
  });
}

template <class W>
void change_by_rule(const Nesterov& rule, std::int64_t, const Prepared<SlotType<W>>& prepared,
                    const Slots<W>& slots) {
  using C = SlotType<W>;
  const C rate = C(rule.learning_rate), momentum = C(rule.momentum);
  for_each_slot(prepared, slots, [&](C w, C g, std::int64_t i) {
    const C m = slots.first[i] = momentum * slots.first[i] - rate * g;
    return w + (momentum * m - rate * g);
  });
}

template <class W>
void change_by_rule(const TorchSgd& rule, std::int64_t, const Prepared<SlotType<W>>& prepared,
                    const Slots<W>& slots) {
  using C = SlotType<W>;
  const C rate = C(rule.learning_rate), momentum = C(rule.momentum);
  for_each_slot(prepared, slots, [&](C w, C g, std::int64_t i) {
    return w - rate * (slots.first[i] = momentum * slots.first[i] + g);
  });
}

}  // namespace

template <class W>
void change_slots(const Optimiser& optimiser, std::int64_t step, const Slots<W>& slots) {
  const Prepared<SlotType<W>> prepared(optimiser);
  std::visit([&](const auto& rule) { change_by_rule(rule, step, prepared, slots); },
             optimiser.rule);
}

template void change_slots(const Optimiser&, std::int64_t, const Slots<float>&);
template void change_slots(const Optimiser&, std::int64_t, const Slots<double>&);
template void change_slots(const Optimiser&, std::int64_t, const Slots<Half>&);

}  // namespace tessera::train
