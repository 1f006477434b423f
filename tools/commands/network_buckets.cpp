#include "tessera/tools/commands/network_buckets.hpp"

#include <fmt/format.h>

#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/io/archive.hpp"
#include "tessera/runtime/saved_weights.hpp"

namespace tessera::tools {
namespace {

constexpr const char* kKind = "the encoded weights of a network";
constexpr io::Archive::Bounds kAnyNumber{0, 1 << 20};

void describe(io::Archive& archive, NetworkBuckets& layers) {
  archive.items("layer", layers, kAnyNumber, [&](auto& layer) {
    bool is_dense = !layer;
    archive.flag("dense", is_dense);
    if (is_dense) return;
    if (!layer) layer.emplace();
    runtime::describe(archive, *layer);
  });
}

}  // namespace

std::string network_bucket_file(const runtime::Network& network) {
  NetworkBuckets layers;
  for (const planner::NetworkLayer& layer : network.spec().layers)
    if (layer.dense)
      layers.emplace_back();
    else
      layers.emplace_back(network.saved_weights(std::ssize(layers)));
  io::Archive archive(kKind);
  describe(archive, layers);
  return archive.bytes();
}

NetworkBuckets read_network_buckets(const std::string& path, const planner::NetworkSpec& spec) {
  NetworkBuckets layers;
  const auto archive = io::Archive::open(path, kKind);
  describe(*archive, layers);
  archive->finish();
  if (layers.size() != spec.layers.size())
    archive->refuse(
        fmt::format("it has {} layers, and the network has {}", layers.size(), spec.layers.size()));
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (layers[l].has_value() == spec.layers[l].dense)
      archive->refuse(fmt::format("layer {} is {} in the file, and not in the network", l + 1,
                                  layers[l] ? "sparse" : "dense"));
  return layers;
}

void restore_layer(runtime::Network& network, std::int64_t layer,
                   const partitioner::SavedWeights& saved, const std::string& path) {
  try {
    network.restore_weights(layer, saved);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    // The network's message names the layer behind "network: ", and here the path takes that place.
    constexpr std::string_view kSource = "network: ";
    std::string_view reason = error.what();
    if (reason.starts_with(kSource)) reason.remove_prefix(kSource.size());
    throw Error(ErrorCode::BadInput, fmt::format("{}: {}", path, reason));
  }
}

}  // namespace tessera::tools
