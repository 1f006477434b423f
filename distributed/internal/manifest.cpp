#include "tessera/distributed/internal/manifest.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/json/reader.hpp"

namespace tessera::distributed::internal {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMost = std::int64_t{1} << 53;  // whole numbers that JSON keeps
constexpr std::int64_t kMostLines = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostSide = 4096, kMostSlots = 64;

[[noreturn]] void fail(const std::string& name, const std::string& why) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", name, why));
}

ManifestLayer read_layer(const json::Value& value, const json::Place& place) {
  json::ObjectReader fields(value, place);
  ManifestLayer layer;
  fields("rows", layer.rows, json::WholeRange{0, kMostLines});
  fields("cols", layer.cols, json::WholeRange{0, kMostLines});
  fields("block_rows", layer.block.rows, json::WholeRange{1, kMostSide});
  fields("block_cols", layer.block.cols, json::WholeRange{1, kMostSide});
  fields("slots", layer.slots, json::WholeRange{0, kMostSlots});
  fields.finish();
  return layer;
}

ManifestSection read_section(const json::Value& value, const json::Place& place) {
  json::ObjectReader fields(value, place);
  ManifestSection section;
  fields("first_row", section.first_row, json::WholeRange{0, kMostLines});
  fields("block_rows", section.block_rows, json::WholeRange{0, kMostLines});
  fields("blocks", section.blocks, json::WholeRange{0, kMostLines});
  fields.finish();
  return section;
}

ManifestPart read_part(const json::Value& value, const json::Place& place) {
  json::ObjectReader fields(value, place);
  ManifestPart part;
  std::int64_t crc = 0;
  fields("file", part.file);
  fields("bytes", part.bytes, json::WholeRange{0, kMost});
  fields("crc32", crc, json::WholeRange{0, std::numeric_limits<std::uint32_t>::max()});
  part.crc = static_cast<std::uint32_t>(crc);
  const json::Place sections = place.member("sections");
  const json::List& items = json::items_of(fields.at("sections"), sections);
  for (std::size_t i = 0; i < items.size(); ++i)
    part.sections.push_back(read_section(items[i], sections.item(i)));
  fields.finish();
  return part;
}

// Returns the bytes of a file that its sections leave, or -1 if they need more than there are. No
// figure of the text makes a product overflow.
std::int64_t unused_bytes(const Manifest& manifest, const ManifestPart& part) {
  std::int64_t left = part.bytes;
  for (std::size_t l = 0; l < manifest.layers.size(); ++l) {
    const ManifestLayer& layer = manifest.layers[l];
    const ManifestSection& section = part.sections[l];
    if (section.blocks > left / 4 / layer.block.area()) return -1;
    const std::int64_t values = section.blocks * layer.block.area();
    left -= 8 * (section.block_rows + 1) + 4 * section.blocks + 4 * values * (1 + layer.slots);
    if (left < 0) return -1;
  }
  return left;
}

// The sections of the parts follow one another and are all rows of each layer.
void check(const Manifest& manifest, const std::string& name) {
  std::vector<std::int64_t> next(manifest.layers.size());
  for (const ManifestPart& part : manifest.parts) {
    if (part.file.empty() || part.file.find('/') != std::string::npos)
      fail(name, fmt::format("file \"{}\" is not the name of a file in the folder", part.file));
    if (part.sections.size() != manifest.layers.size())
      fail(name, fmt::format("{} has {} sections for {} layers", part.file, part.sections.size(),
                             manifest.layers.size()));
    for (std::size_t l = 0; l < next.size(); ++l) {
      const ManifestSection& section = part.sections[l];
      if (section.first_row != next[l])
        fail(name, fmt::format("{} begins with block row {} of layer {}; it must be {}", part.file,
                               section.first_row, l, next[l]));
      next[l] += section.block_rows;
    }
    if (unused_bytes(manifest, part) != 0)
      fail(name, fmt::format("{} has {} bytes, which are not those of its sections", part.file,
                             part.bytes));
  }
  for (std::size_t l = 0; l < next.size(); ++l)
    if (next[l] != ceil_div(manifest.layers[l].rows, manifest.layers[l].block.rows))
      fail(name, fmt::format("the files have {} block rows of layer {}, which has {} rows", next[l],
                             l, manifest.layers[l].rows));
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  using Json = nlohmann::ordered_json;
  Json layers = Json::array(), parts = Json::array();
  for (const ManifestLayer& l : manifest.layers)
    layers.push_back({{"rows", l.rows},
                      {"cols", l.cols},
                      {"block_rows", l.block.rows},
                      {"block_cols", l.block.cols},
                      {"slots", l.slots}});
  for (const ManifestPart& p : manifest.parts) {
    Json sections = Json::array();
    for (const ManifestSection& s : p.sections)
      sections.push_back(
          {{"first_row", s.first_row}, {"block_rows", s.block_rows}, {"blocks", s.blocks}});
    parts.push_back(
        {{"file", p.file}, {"bytes", p.bytes}, {"crc32", p.crc}, {"sections", sections}});
  }
  return Json({{"version", kVersion},
               {"serial", manifest.serial},
               {"step", manifest.step},
               {"layers", layers},
               {"parts", parts}})
             .dump(1) +
         "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& name) {
  const json::Value value = json::parse(text, name);
  json::ObjectReader fields(value, {name, ""});
  Manifest manifest;
  std::int64_t version = 0;
  fields("version", version, json::WholeRange{kVersion, kVersion});
  fields("serial", manifest.serial, json::WholeRange{0, kMost});
  fields("step", manifest.step, json::WholeRange{0, kMost});
  const auto list = [&](std::string_view key, const auto& read_item) {
    const json::Place place{name, std::string(key)};
    const json::List& items = json::items_of(fields.at(key), place);
    for (std::size_t i = 0; i < items.size(); ++i) read_item(items[i], place.item(i));
  };
  list("layers", [&](const json::Value& item, const json::Place& place) {
    manifest.layers.push_back(read_layer(item, place));
  });
  list("parts", [&](const json::Value& item, const json::Place& place) {
    manifest.parts.push_back(read_part(item, place));
  });
  fields.finish();
  check(manifest, name);
  return manifest;
}

SectionPlaces places_of(const Manifest& manifest, const ManifestPart& part, std::size_t layer) {
  SectionPlaces places;
  for (std::size_t l = 0; l <= layer; ++l) {
    const ManifestSection& section = part.sections[l];
    const std::int64_t values = section.blocks * manifest.layers[l].block.area();
    places.slots.clear();
    places.row_begin = places.end;
    places.col = places.row_begin + 8 * (section.block_rows + 1);
    places.values = places.col + 4 * section.blocks;
    places.end = places.values + 4 * values;
    for (std::int64_t s = 0; s < manifest.layers[l].slots; ++s) {
      places.slots.push_back(places.end);
      places.end += 4 * values;
    }
  }
  return places;
}

}  // namespace tessera::distributed::internal
