#include "tessera/runtime/tile_options.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera::runtime {

TileOptions tile_options(const PassOptions& options) {
  if (options.target == nullptr) return {};
  const auto* const own = dynamic_cast<const TileOptions*>(options.target);
  if (own == nullptr)
    throw_invalid("options.target is for another kind of layer; give runtime::TileOptions");
  TileOptions tiles = *own;
  if (!options.is_repeated) return tiles;
  tiles.fault.reset();
  tiles.struck = nullptr;
  return tiles;
}

void refuse_layer_options(std::string_view call, const PassOptions& options) {
  if (!options.bias.empty() || options.activation != codelets::Activation::None ||
      !options.where_positive.empty() || options.accumulate != layer::Accumulate::No)
    throw_invalid(
        fmt::format("{}: bias, activation, derivative and sum belong to passes of a layer; apply "
                    "them to the results",
                    call));
}

}  // namespace tessera::runtime
