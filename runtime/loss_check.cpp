#include "tessera/runtime/loss_check.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera::runtime {
namespace {

// The sign of a NaN depends on the processor.
double without_sign(double value) { return std::isnan(value) ? std::abs(value) : value; }

}  // namespace

void refuse_loss(std::string_view what, double loss, std::span<const double> largest) {
  std::size_t worst = 0;
  for (std::size_t layer = 1; layer < largest.size(); ++layer)
    if (!(largest[layer] <= largest[worst]) && !std::isnan(largest[worst])) worst = layer;
  throw_invalid(
      fmt::format("{} is {}; the largest value is {} in layer {}; a smaller learning rate may help",
                  what, without_sign(loss), without_sign(largest[worst]), worst + 1));
}

}  // namespace tessera::runtime
