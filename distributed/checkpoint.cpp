#include "tessera/distributed/checkpoint.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/write_file.hpp"
#include "tessera/distributed/internal/manifest.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::distributed {
namespace {

using internal::Manifest;
using internal::ManifestPart;
using internal::ManifestSection;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr const char* kManifest = "manifest.json";
constexpr std::string_view kWriting = "checkpoint: files of the ranks";
constexpr std::string_view kReading = "checkpoint: reading";

std::string in_folder(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", path, why));
}

void check_state(const RunState& own, int ranks, int rank) {
  for (std::size_t l = 0; l < own.layers.size(); ++l) {
    const LayerState& layer = own.layers[l];
    check(layer.outputs, layer.outputs.rows(), layer.rows.block.rows, ranks);
    sparse::check(layer.rows);
    const bool fits =
        layer.rows.rows == round_up(layer.outputs.of(rank).size(), layer.rows.block.rows);
    const bool is_whole = std::all_of(layer.slots.begin(), layer.slots.end(), [&](const auto& s) {
      return s.size() == layer.rows.values.size();
    });
    if (!fits || !is_whole)
      throw Error(
          ErrorCode::InvalidArgument,
          fmt::format("checkpoint: layer {} of rank {} has {} rows, {} by its cut; each slot "
                      "must have {} numbers",
                      l, rank, layer.rows.rows, layer.outputs.of(rank).size(),
                      layer.rows.values.size()));
  }
}

template <class T>
void append(std::string& bytes, const std::vector<T>& list) {
  bytes.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T));
}

std::string bytes_of(const RunState& own) {
  std::string bytes;
  for (const LayerState& layer : own.layers) {
    append(bytes, layer.rows.row_begin);
    append(bytes, layer.rows.col);
    append(bytes, layer.rows.values);
    for (const std::vector<float>& slot : layer.slots) append(bytes, slot);
  }
  return bytes;
}

std::uint32_t crc_of(std::string_view bytes, std::uint32_t before = 0) {
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// The figures of a rank's file that go into the manifest; sections follow in a second list.
struct PartFigures {
  std::int64_t bytes = 0;
  std::uint32_t crc = 0;
};

std::int64_t serial_of(const std::string& folder) {
  const std::string path = in_folder(folder, kManifest);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return 0;
  try {
    return internal::parse_manifest(read_file(path), path).serial;
  } catch (const Error&) {
    return 0;  // not a checkpoint of ours, or damaged: it is replaced
  }
}

std::string part_name(std::int64_t serial, int rank) {
  return fmt::format("part-{}-{}.bin", serial, rank);
}

// Removes files of ranks that the manifest does not name: of the checkpoint before, and of one that
// was killed before it was whole.
void remove_old_parts(const std::string& folder, const Manifest& manifest) {
  std::set<std::string> named;
  for (const ManifestPart& part : manifest.parts) named.insert(part.file);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("part-") && name.ends_with(".bin") && !named.contains(name))
      std::filesystem::remove(entry.path(), ignored);
  }
}

Manifest manifest_of(Communicator& ranks, const RunState& own, std::int64_t serial,
                     const PartFigures& figures) {
  std::vector<ManifestSection> sections;
  for (const LayerState& layer : own.layers)
    sections.push_back({layer.outputs.of(ranks.rank()).begin / layer.rows.block.rows,
                        layer.rows.block_rows(), layer.rows.blocks()});
  const auto all_figures = gather_lists(ranks, kWriting, std::vector<PartFigures>{figures});
  const auto all_sections = gather_lists(ranks, kWriting, sections);
  Manifest manifest{serial, own.step, {}, {}};
  for (const LayerState& layer : own.layers)
    manifest.layers.push_back(
        {layer.outputs.rows(), layer.rows.cols, layer.rows.block, std::ssize(layer.slots)});
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const PartFigures& f = all_figures[std::size_t(rank)][0];
    manifest.parts.push_back(
        {part_name(serial, rank), f.bytes, f.crc, all_sections[std::size_t(rank)]});
    // A rank without rows has no first row of its own.
    for (std::size_t l = 0; rank > 0 && l < manifest.layers.size(); ++l) {
      const ManifestSection& before = manifest.parts[std::size_t(rank) - 1].sections[l];
      manifest.parts.back().sections[l].first_row = before.first_row + before.block_rows;
    }
  }
  return manifest;
}

// A file of a rank, of which parts are read.
class PartFile {
 public:
  PartFile(const std::string& folder, const ManifestPart& part)
      : path_(in_folder(folder, part.file)), file_(path_, std::ios::binary) {
    if (!file_) fail(path_, "the manifest names this file, and it cannot be read");
  }

  template <class T>
  void read(std::int64_t at, std::int64_t count, std::vector<T>& list) {
    const std::size_t before = list.size();
    list.resize(before + std::size_t(count));
    file_.seekg(at);
    file_.read(reinterpret_cast<char*>(list.data() + before), count * std::int64_t(sizeof(T)));
    if (!file_) fail(path_, "the file ends too soon");
  }

  void check_crc(const ManifestPart& part) {
    constexpr std::int64_t kPiece = 1 << 20;
    std::int64_t left = part.bytes;
    std::uint32_t crc = 0;
    std::vector<char> piece;
    for (; left > 0; left -= std::ssize(piece)) {
      piece.clear();
      read(part.bytes - left, std::min(left, kPiece), piece);
      crc = crc_of({piece.data(), piece.size()}, crc);
    }
    file_.peek();
    if (!file_.eof()) fail(path_, fmt::format("the file has more than {} bytes", part.bytes));
    file_.clear();
    if (crc != part.crc)
      fail(path_, fmt::format("the checksum is {:08x}; the manifest says {:08x}", crc, part.crc));
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::ifstream file_;
};

// Reads the block rows [first, end) of a layer from the files that have them.
LayerState read_layer(const std::string& folder, const Manifest& manifest, std::size_t layer,
                      std::int64_t first, std::int64_t end) {
  const internal::ManifestLayer& shape = manifest.layers[layer];
  const std::int64_t area = shape.block.area();
  LayerState state;
  state.rows = {.rows = (end - first) * shape.block.rows, .cols = shape.cols, .block = shape.block};
  state.slots.resize(std::size_t(shape.slots));
  for (const ManifestPart& part : manifest.parts) {
    const ManifestSection& section = part.sections[layer];
    const std::int64_t from = std::max(first, section.first_row) - section.first_row;
    const std::int64_t to =
        std::min(end, section.first_row + section.block_rows) - section.first_row;
    if (from >= to) continue;
    const internal::SectionPlaces places = internal::places_of(manifest, part, layer);
    PartFile file(folder, part);
    std::vector<std::int64_t> row_begin;
    file.read(places.row_begin + 8 * from, to - from + 1, row_begin);
    const bool is_legal = std::is_sorted(row_begin.begin(), row_begin.end()) &&
                          row_begin.front() >= 0 && row_begin.back() <= section.blocks;
    if (!is_legal) fail(file.path(), "the positions of rows are not ascending");
    const std::int64_t block = row_begin.front(), blocks = row_begin.back() - block;
    const std::int64_t before = state.rows.row_begin.back();
    for (std::size_t r = 1; r < row_begin.size(); ++r)
      state.rows.row_begin.push_back(before + row_begin[r] - block);
    file.read(places.col + 4 * block, blocks, state.rows.col);
    file.read(places.values + 4 * block * area, blocks * area, state.rows.values);
    for (std::size_t s = 0; s < state.slots.size(); ++s)
      file.read(places.slots[s] + 4 * block * area, blocks * area, state.slots[s]);
  }
  sparse::check(state.rows);
  return state;
}

// Returns the cut of a layer with about as many blocks for each rank.
RowCut cut_of(const std::string& folder, const Manifest& manifest, std::size_t layer, int ranks) {
  std::vector<std::int64_t> counts;
  for (const ManifestPart& part : manifest.parts) {
    const ManifestSection& section = part.sections[layer];
    std::vector<std::int64_t> row_begin;
    PartFile(folder, part)
        .read(internal::places_of(manifest, part, layer).row_begin, section.block_rows + 1,
              row_begin);
    for (std::size_t r = 1; r < row_begin.size(); ++r)
      counts.push_back(row_begin[r] - row_begin[r - 1]);
  }
  const internal::ManifestLayer& shape = manifest.layers[layer];
  return cut_evenly(counts, shape.rows, shape.block.rows, ranks);
}

}  // namespace

void write_checkpoint(Communicator& ranks, const std::string& folder, const RunState& own) {
  check_state(own, ranks.size(), ranks.rank());
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw CannotWrite(
        fmt::format("{}: the folder cannot be created: {}", folder, failed.message()));
  // The first rank says which name is free.
  const std::int64_t serial =
      gather_lists(ranks, kWriting,
                   std::vector<std::int64_t>{ranks.rank() == 0 ? serial_of(folder) + 1 : 0})[0][0];
  const std::string bytes = bytes_of(own);
  write_file(in_folder(folder, part_name(serial, ranks.rank())), bytes);
  const Manifest manifest = manifest_of(ranks, own, serial, {std::ssize(bytes), crc_of(bytes)});
  if (ranks.rank() == 0) {
    write_file(in_folder(folder, kManifest), internal::to_json(manifest));
    remove_old_parts(folder, manifest);
  }
  ranks.barrier(kWriting);
}

RunState read_checkpoint(Communicator& ranks, const std::string& folder,
                         std::span<const RowCut> outputs) {
  const std::string path = in_folder(folder, kManifest);
  const Manifest manifest = internal::parse_manifest(read_file(path), path);
  for (std::size_t i = std::size_t(ranks.rank()); i < manifest.parts.size();
       i += std::size_t(ranks.size()))
    PartFile(folder, manifest.parts[i]).check_crc(manifest.parts[i]);
  ranks.barrier(kReading);
  if (!outputs.empty() && outputs.size() != manifest.layers.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} cuts were given for the {} layers of {}", outputs.size(),
                            manifest.layers.size(), path));
  RunState state{manifest.step, {}};
  for (std::size_t l = 0; l < manifest.layers.size(); ++l) {
    const internal::ManifestLayer& shape = manifest.layers[l];
    const RowCut cut = outputs.empty() ? cut_of(folder, manifest, l, ranks.size()) : outputs[l];
    check(cut, shape.rows, shape.block.rows, ranks.size());
    const Range own = cut.of(ranks.rank());
    state.layers.push_back(read_layer(folder, manifest, l, ceil_div(own.begin, shape.block.rows),
                                      ceil_div(own.end, shape.block.rows)));
    state.layers.back().outputs = cut;
  }
  ranks.barrier(kReading);
  return state;
}

}  // namespace tessera::distributed
