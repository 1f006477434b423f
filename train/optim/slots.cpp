#include "tessera/train/optim/slots.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace tessera::train {
namespace {

// The numbers of an optimiser, each rounded once to the type of arithmetic.
template <class T>
struct Prepared {
  T rescale, clip, weight_decay;
  bool clips;

  explicit Prepared(const Optimiser& o)
      : rescale(T(o.rescale)),
        clip(T(o.clip.value_or(0))),
        weight_decay(T(o.weight_decay)),
        clips(o.clip.has_value()) {}
  T gradient(T given, T weight) const {
    T g = rescale * given;
    if (clips) g = std::clamp(g, -clip, clip);
    return g + weight_decay * weight;
  }
  T unclipped(T given, T weight) const { return rescale * given + weight_decay * weight; }
};

// Replaces each weight by change(weight, prepared gradient, slot).
template <class T, class Change>
void for_each_slot(const Prepared<T>& prepared, const Slots<T>& slots, Change&& change) {
  const auto walk = [&](auto gradient_of) {
    for (std::int64_t i = 0; i < slots.count; ++i) {
      const T w = slots.weight[i];
      slots.weight[i] = change(w, gradient_of(i, w), i);
    }
  };
  // Two loops without a branch inside, so that compilers vectorise the usual one: a step on 1.7
  // million floats takes as long as the loop a caller would write.
  if (prepared.clips)
    walk([&](std::int64_t i, T w) { return prepared.gradient(slots.gradient[i], w); });
  else
    walk([&](std::int64_t i, T w) { return prepared.unclipped(slots.gradient[i], w); });
}

template <class T>
void change_by_rule(const Sgd& rule, std::int64_t, const Prepared<T>& prepared,
                    const Slots<T>& slots) {
  const T rate = T(rule.learning_rate), momentum = T(rule.momentum);
  if (slots.first == nullptr)
    return for_each_slot(prepared, slots, [&](T w, T g, std::int64_t) { return w - rate * g; });
  for_each_slot(prepared, slots, [&](T w, T g, std::int64_t i) {
    return w + (slots.first[i] = momentum * slots.first[i] - rate * g);
  });
}

// Adam and AdamW; shrunk(w) is the weight after AdamW's decay.
template <class T, class AnyAdam, class Shrunk>
void change_by_adam(const AnyAdam& rule, std::int64_t step, const Prepared<T>& prepared,
                    const Slots<T>& slots, Shrunk&& shrunk) {
  const double t = double(step);
  const T rate = T(rule.learning_rate * std::sqrt(1 - std::pow(rule.beta2, t)) /
                   (1 - std::pow(rule.beta1, t)));
  const T beta1 = T(rule.beta1), beta2 = T(rule.beta2), epsilon = T(rule.epsilon);
  for_each_slot(prepared, slots, [&](T w, T g, std::int64_t i) {
    T &m = slots.first[i], &v = slots.second[i];
    m = beta1 * m + (T(1) - beta1) * g;
    v = beta2 * v + (T(1) - beta2) * g * g;
    return shrunk(w) - rate * m / (std::sqrt(v) + epsilon);
  });
}

template <class T>
void change_by_rule(const Adam& rule, std::int64_t step, const Prepared<T>& prepared,
                    const Slots<T>& slots) {
  change_by_adam(rule, step, prepared, slots, [](T w) { return w; });
}

template <class T>
void change_by_rule(const AdamW& rule, std::int64_t step, const Prepared<T>& prepared,
                    const Slots<T>& slots) {
  const auto decay = T(rule.learning_rate * rule.decay);
  change_by_adam(rule, step, prepared, slots, [decay](T w) { return w - decay * w; });
}

template <class T>
void change_by_rule(const AdaGrad& rule, std::int64_t, const Prepared<T>& prepared,
                    const Slots<T>& slots) {
  const T rate = T(rule.learning_rate), epsilon = T(rule.epsilon);
  for_each_slot(prepared, slots, [&](T w, T g, std::int64_t i) {
    T& h = slots.first[i];
    h += g * g;
    return w - rate * g / (std::sqrt(h) + epsilon);
  });
}

template <class T>
void change_by_rule(const Nesterov& rule, std::int64_t, const Prepared<T>& prepared,
                    const Slots<T>& slots) {
  const T rate = T(rule.learning_rate), momentum = T(rule.momentum);
  for_each_slot(prepared, slots, [&](T w, T g, std::int64_t i) {
    const T m = slots.first[i] = momentum * slots.first[i] - rate * g;
    return w + (momentum * m - rate * g);
  });
}

template <class T>
void change_by_rule(const TorchSgd& rule, std::int64_t, const Prepared<T>& prepared,
                    const Slots<T>& slots) {
  const T rate = T(rule.learning_rate), momentum = T(rule.momentum);
  for_each_slot(prepared, slots, [&](T w, T g, std::int64_t i) {
    return w - rate * (slots.first[i] = momentum * slots.first[i] + g);
  });
}

}  // namespace

template <class T>
void change_slots(const Optimiser& optimiser, std::int64_t step, const Slots<T>& slots) {
  const Prepared<T> prepared(optimiser);
  std::visit([&](const auto& rule) { change_by_rule(rule, step, prepared, slots); },
             optimiser.rule);
}

template void change_slots(const Optimiser&, std::int64_t, const Slots<float>&);
template void change_slots(const Optimiser&, std::int64_t, const Slots<double>&);

}  // namespace tessera::train
