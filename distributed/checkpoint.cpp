#include "tessera/distributed/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/write_file.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/part.hpp"
#include "tessera/io/archive.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::distributed {
namespace {

constexpr const char* kManifest = "manifest.safetensors";
constexpr const char* kManifestKind = "the manifest of ranks";
constexpr const char* kPartKind = "the part of a rank";
constexpr std::string_view kWriting = "checkpoint: files of the ranks";
constexpr std::string_view kReading = "checkpoint: reading";
constexpr std::int64_t kMostLines = std::numeric_limits<std::int32_t>::max();
constexpr io::Archive::Bounds kCounts{0, std::int64_t{1} << 53}, kLines{0, kMostLines},
    kSides{1, 4096}, kSlots{0, 64}, kLayers{0, 1 << 20};

// A layer of a checkpoint.
struct ManifestLayer {
  std::int64_t cols = 0;  // in whole blocks
  BlockShape block;
  std::int64_t slots = 0;
  RowCut outputs;                       // of the ranks that wrote it
  std::vector<std::int64_t> row_begin;  // of the whole matrix

  // The blocks from one element row to another.
  Range blocks(Range rows) const {
    const Range of = in_blocks(rows, block.rows);
    return {row_begin[std::size_t(of.begin)], row_begin[std::size_t(of.end)]};
  }
};

// A manifest names the parts of a checkpoint. The serial number is in the names of the parts.
struct Manifest {
  std::int64_t serial = 0, step = 0;
  std::vector<std::int64_t> checksums;  // of the files of the parts, by rank
  std::vector<ManifestLayer> layers;
};

void describe(io::Archive& archive, Manifest& manifest) {
  archive.whole("serial", manifest.serial, kCounts);
  archive.whole("step", manifest.step, kCounts);
  archive.list("checksums", manifest.checksums);
  archive.items("layer", manifest.layers, kLayers, [&](ManifestLayer& layer) {
    archive.whole("cols", layer.cols, kLines);
    archive.whole("block_rows", layer.block.rows, kSides);
    archive.whole("block_cols", layer.block.cols, kSides);
    archive.whole("slots", layer.slots, kSlots);
    archive.list("outputs", layer.outputs.begin, {std::ssize(manifest.checksums) + 1});
    archive.list("row_begin", layer.row_begin);
  });
}

std::string slot_name(std::size_t slot) { return fmt::format("slot{}", slot + 1); }

// Describes the part of a rank that is written. Its rows are in the manifest.
void describe(io::Archive& archive, LayerState& layer) {
  const std::int64_t values = layer.rows.blocks() * layer.rows.block.area();
  archive.list("col", layer.rows.col);
  archive.list("values", layer.rows.values, {values});
  for (std::size_t s = 0; s < layer.slots.size(); ++s)
    archive.list(slot_name(s), layer.slots[s], {values});
}

std::string in_folder(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

std::string part_name(std::int64_t serial, int rank) {
  return fmt::format("part-{}-{}.safetensors", serial, rank);
}

void check_state(const RunState& own, int ranks, int rank) {
  for (const LayerState& layer : own.layers) {
    check(layer.outputs, layer.outputs.rows(), layer.rows.block.rows, ranks);
    sparse::check(layer.rows);
    const std::int64_t rows = layer.outputs.of(rank).size();
    if (layer.rows.rows != round_up(rows, layer.rows.block.rows))
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("checkpoint: a layer of rank {} has {} rows, {} by its cut", rank,
                              layer.rows.rows, rows));
  }
}

// Reads the manifest of a folder, with a legal cut and positions of all rows of each layer.
Manifest read_manifest(const std::string& folder) {
  const auto archive = io::Archive::open(in_folder(folder, kManifest), kManifestKind);
  Manifest manifest;
  describe(*archive, manifest);
  archive->finish();
  for (std::size_t l = 0; l < manifest.layers.size(); ++l) {
    const ManifestLayer& layer = manifest.layers[l];
    const std::vector<std::int64_t>& rows = layer.row_begin;
    try {
      check(layer.outputs, layer.outputs.rows(), layer.block.rows, layer.outputs.ranks());
    } catch (const Error& error) {
      archive->refuse(fmt::format("list layer{}.outputs: {}", l + 1, error.what()));
    }
    if (std::ssize(rows) != ceil_div(layer.outputs.rows(), layer.block.rows) + 1 ||
        rows.front() != 0 || rows.back() > kMostLines || !std::ranges::is_sorted(rows))
      archive->refuse(
          fmt::format("list layer{}.row_begin does not ascend from 0 to the blocks of "
                      "the {} rows of the layer",
                      l + 1, layer.outputs.rows()));
  }
  return manifest;
}

std::int64_t serial_of(const std::string& folder) {
  try {
    return read_manifest(folder).serial;
  } catch (const Error&) {
    return 0;  // none, not a checkpoint of ours, or damaged: it is replaced
  }
}

// Removes files of ranks that the manifest does not name: of the checkpoint before, and of one that
// was killed before it was whole.
void remove_old_parts(const std::string& folder, const Manifest& manifest) {
  std::set<std::string> named;
  for (std::size_t rank = 0; rank < manifest.checksums.size(); ++rank)
    named.insert(part_name(manifest.serial, int(rank)));
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("part-") && name.ends_with(".safetensors") && !named.contains(name))
      std::filesystem::remove(entry.path(), ignored);
  }
}

Manifest manifest_of(Communicator& ranks, const RunState& own, std::int64_t serial,
                     std::uint32_t checksum) {
  Manifest manifest{serial, own.step, gather(ranks, kWriting, std::int64_t{checksum}), {}};
  for (const LayerState& layer : own.layers) {
    const sparse::Csr<float>& rows = layer.rows;
    manifest.layers.push_back({rows.cols, rows.block, std::ssize(layer.slots), layer.outputs, {0}});
    std::vector<std::int64_t>& row_begin = manifest.layers.back().row_begin;
    for (const std::vector<std::int64_t>& part : gather_lists(ranks, kWriting, rows.row_begin)) {
      const std::int64_t before = row_begin.back();
      for (std::size_t r = 1; r < part.size(); ++r) row_begin.push_back(before + part[r]);
    }
  }
  return manifest;
}

// Opens the file of a part, which must have the checksum of the manifest.
std::unique_ptr<io::Archive> open_part(const std::string& folder, const Manifest& manifest,
                                       int part, io::Archive::Checksum checksum) {
  auto archive =
      io::Archive::open(in_folder(folder, part_name(manifest.serial, part)), kPartKind, checksum);
  if (archive->checksum() != manifest.checksums[std::size_t(part)])
    archive->refuse(fmt::format("the checksum is {:08x}; the manifest says {:08x}",
                                archive->checksum(), manifest.checksums[std::size_t(part)]));
  return archive;
}

// Returns the rows of a layer from the files that have them.
LayerState read_layer(const std::string& folder, const Manifest& manifest, std::size_t l,
                      const RowCut& cut, Range own) {
  const ManifestLayer& layer = manifest.layers[l];
  const std::int64_t area = layer.block.area();
  const Range rows = in_blocks(own, layer.block.rows), blocks = layer.blocks(own);
  LayerState state{.outputs = cut, .rows = {}, .slots = {}};
  state.rows = {.rows = rows.size() * layer.block.rows, .cols = layer.cols, .block = layer.block};
  state.slots.resize(std::size_t(layer.slots));
  for (std::int64_t r = rows.begin; r < rows.end; ++r)
    state.rows.row_begin.push_back(layer.row_begin[std::size_t(r) + 1] - blocks.begin);
  for (int part = 0; part < layer.outputs.ranks(); ++part) {
    const Range all = layer.blocks(layer.outputs.of(part));
    const Range of{std::max(blocks.begin, all.begin) - all.begin,
                   std::min(blocks.end, all.end) - all.begin};
    if (of.begin >= of.end) continue;
    const auto archive = open_part(folder, manifest, part, io::Archive::Checksum::Skip);
    archive->within(fmt::format("layer{}", l + 1), [&] {
      const Range values{of.begin * area, of.end * area};
      archive->append_part("col", of, all.size(), state.rows.col);
      archive->append_part("values", values, all.size() * area, state.rows.values);
      for (std::size_t s = 0; s < state.slots.size(); ++s)
        archive->append_part(slot_name(s), values, all.size() * area, state.slots[s]);
    });
  }
  try {
    sparse::check(state.rows);
  } catch (const Error& error) {
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: layer {}: {}", in_folder(folder, kManifest), l + 1, error.what()));
  }
  return state;
}

}  // namespace

void write_checkpoint(Communicator& ranks, const std::string& folder, RunState own) {
  check_state(own, ranks.size(), ranks.rank());
  io::Archive part(kPartKind);
  part.items("layer", own.layers, kLayers, [&](LayerState& layer) { describe(part, layer); });
  const std::string bytes = part.bytes();  // a state that cannot be saved is refused here
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw CannotWrite(
        fmt::format("{}: the folder cannot be created: {}", folder, failed.message()));
  // The first rank says which name is free.
  const std::int64_t serial =
      gather(ranks, kWriting, ranks.rank() == 0 ? serial_of(folder) + 1 : std::int64_t{0})[0];
  write_file(in_folder(folder, part_name(serial, ranks.rank())), bytes);
  Manifest manifest = manifest_of(ranks, own, serial, part.checksum());
  if (ranks.rank() == 0) {
    io::Archive archive(kManifestKind);
    describe(archive, manifest);
    write_file(in_folder(folder, kManifest), archive.bytes());
    remove_old_parts(folder, manifest);
  }
  ranks.barrier(kWriting);
}

RunState read_checkpoint(Communicator& ranks, const std::string& folder,
                         std::span<const RowCut> outputs) {
  const Manifest manifest = read_manifest(folder);
  for (int part = ranks.rank(); part < std::ssize(manifest.checksums); part += ranks.size())
    open_part(folder, manifest, part, io::Archive::Checksum::Compare);
  ranks.barrier(kReading);
  if (!outputs.empty() && outputs.size() != manifest.layers.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} cuts were given for the {} layers of {}", outputs.size(),
                            manifest.layers.size(), in_folder(folder, kManifest)));
  RunState state{manifest.step, {}};
  for (std::size_t l = 0; l < manifest.layers.size(); ++l) {
    const ManifestLayer& layer = manifest.layers[l];
    const RowCut cut = outputs.empty() ? cut_evenly(layer.row_begin, layer.outputs.rows(),
                                                    layer.block.rows, ranks.size())
                                       : outputs[l];
    check(cut, layer.outputs.rows(), layer.block.rows, ranks.size());
    state.layers.push_back(read_layer(folder, manifest, l, cut, cut.of(ranks.rank())));
  }
  ranks.barrier(kReading);
  return state;
}

}  // namespace tessera::distributed
