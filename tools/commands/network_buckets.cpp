#include "tessera/tools/commands/network_buckets.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/partitioner/saved_weights.hpp"

namespace tessera::tools {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied byte by byte");

constexpr std::string_view kMark = "TSWNET1\n";
constexpr std::size_t kNumber = sizeof(std::uint64_t);

[[noreturn]] void refuse_file(const std::string& path, const std::string& reason) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", path, reason));
}

void append_number(std::string& bytes, std::uint64_t number) {
  char text[kNumber];
  std::memcpy(text, &number, kNumber);
  bytes.append(text, kNumber);
}

// Takes a number from the front; the caller has checked that it is there.
std::uint64_t take_number(std::string_view& bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), kNumber);
  bytes.remove_prefix(kNumber);
  return number;
}

void check_layers(const std::string& path, const std::vector<std::string>& parts,
                  const std::vector<planner::NetworkLayer>& layers) {
  if (parts.size() != layers.size())
    refuse_file(
        path, fmt::format("it has {} layers, and the network has {}", parts.size(), layers.size()));
  for (std::size_t l = 0; l < parts.size(); ++l)
    if (parts[l].empty() != layers[l].dense)
      refuse_file(path, fmt::format("layer {} is {} in the file, and not in the network", l + 1,
                                    parts[l].empty() ? "dense" : "sparse"));
}

}  // namespace

std::string network_bucket_file(const runtime::Network& network) {
  const std::vector<planner::NetworkLayer>& layers = network.spec().layers;
  std::string bytes(kMark), parts;
  append_number(bytes, layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::string part;
    if (!layers[l].dense) {
      partitioner::SavedWeights saved = network.saved_weights(std::int64_t(l));
      saved.plan = fmt::format("layer {} of a network", l + 1);
      part = partitioner::write_saved_weights(saved);
    }
    append_number(bytes, part.size());
    parts += part;
  }
  return bytes + parts;
}

std::vector<std::string> read_network_buckets(const std::string& path,
                                              const planner::NetworkSpec& spec) {
  const std::string file = read_file(path);
  std::string_view rest = file;
  if (!rest.starts_with(kMark) || rest.size() < kMark.size() + kNumber)
    refuse_file(path, "this is no file of tessera network --save-buckets");
  rest.remove_prefix(kMark.size());
  const std::uint64_t layers = take_number(rest);
  if (layers > rest.size() / kNumber) refuse_file(path, "the file is cut off");
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t l = 0; l < layers; ++l) lengths.push_back(take_number(rest));
  std::vector<std::string> parts;
  for (const std::uint64_t length : lengths) {
    if (length > rest.size()) refuse_file(path, "the file is cut off");
    parts.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (!rest.empty()) refuse_file(path, fmt::format("{} bytes follow its end", rest.size()));
  check_layers(path, parts, spec.layers);
  return parts;
}

void restore_layer(runtime::Network& network, std::int64_t layer, const std::string& part,
                   const std::string& path) {
  const partitioner::SavedWeights saved =
      partitioner::read_saved_weights(part, fmt::format("{}: layer {}", path, layer + 1));
  try {
    network.restore_weights(layer, saved);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    refuse_file(path, error.what());
  }
}

}  // namespace tessera::tools
