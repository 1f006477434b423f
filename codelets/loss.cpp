#include "tessera/codelets/loss.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "tessera/base/error.hpp"

namespace tessera::codelets {

std::string_view to_string(Loss loss) {
  switch (loss) {
    case Loss::SoftmaxCrossEntropy:
      return "softmax-cross-entropy";
    case Loss::MeanSquaredError:
      return "mean-squared-error";
  }
  assertion_failed("every loss has a name", __FILE__, __LINE__);
}

template <class T>
float softmax_cross_entropy(const LossPart& part, const std::int32_t* labels, T* outputs) noexcept {
  float loss = 0;
  for (std::int64_t column = 0; column < part.columns; ++column) {
    T* const first = outputs + column;
    const auto at = [&](std::int64_t row) -> T& { return first[row * part.columns]; };
    float most = float(at(0)), sum = 0;
    for (std::int64_t row = 1; row < part.rows; ++row) most = std::max(most, float(at(row)));
    const float wanted = float(at(labels[column])) - most;
    // Floats keep the exponentials; types of 16 bits would round them.
    for (std::int64_t row = 0; row < part.rows; ++row) {
      const float power = std::exp(float(at(row)) - most);
      sum += power;
      if constexpr (std::is_same_v<T, float>) at(row) = power;
    }
    loss += std::log(sum) - wanted;
    for (std::int64_t row = 0; row < part.rows; ++row) {
      float power = float(at(row));
      if constexpr (!std::is_same_v<T, float>) power = std::exp(power - most);
      const float chance = power / sum;
      at(row) = T((chance - (row == labels[column] ? 1.0f : 0.0f)) / float(part.batch));
    }
  }
  return loss / float(part.batch);
}

template <class T>
float mean_squared_error(const LossPart& part, const T* targets, T* outputs) noexcept {
  const float count = float(part.rows) * float(part.batch);
  float loss = 0;
  for (std::int64_t i = 0; i < part.rows * part.columns; ++i) {
    const float off = float(outputs[i]) - float(targets[i]);
    loss += off * off;
    outputs[i] = T(2 * off / count);
  }
  return loss / count;
}

#define TESSERA_LOSS(T)                                                                    \
  template float softmax_cross_entropy(const LossPart&, const std::int32_t*, T*) noexcept; \
  template float mean_squared_error(const LossPart&, const T*, T*) noexcept;
TESSERA_LOSS(float)
TESSERA_LOSS(Half)
TESSERA_LOSS(BFloat16)
#undef TESSERA_LOSS

}  // namespace tessera::codelets
