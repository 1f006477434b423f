#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/block_shape.hpp"

namespace tessera::distributed::internal {

// A layer of a checkpoint.
struct ManifestLayer {
  std::int64_t rows = 0;  // of the layer, which may end inside its last block
  std::int64_t cols = 0;  // in whole blocks
  BlockShape block;
  std::int64_t slots = 0;
};

// A rank's part of a layer in its file: for so many block rows the positions of their blocks
// (std::int64_t, one more than rows), block columns (std::int32_t), values, and each slot (float).
struct ManifestSection {
  std::int64_t first_row = 0;  // block row of the layer
  std::int64_t block_rows = 0, blocks = 0;
};

// The file of one rank: its sections, layer after layer.
struct ManifestPart {
  std::string file;  // name in the folder
  std::int64_t bytes = 0;
  std::uint32_t crc = 0;
  std::vector<ManifestSection> sections;
};

struct Manifest {
  std::int64_t serial = 0, step = 0;
  std::vector<ManifestLayer> layers;
  std::vector<ManifestPart> parts;  // by rank
};

std::string to_json(const Manifest& manifest);

// Throws Error{BadInput} for a text that is no manifest or contradicts itself.
Manifest parse_manifest(const std::string& text, const std::string& name);

// Returns where the lists of a section are in its file, in bytes.
struct SectionPlaces {
  std::int64_t row_begin = 0, col = 0, values = 0, end = 0;
  std::vector<std::int64_t> slots;
};
SectionPlaces places_of(const Manifest& manifest, const ManifestPart& part, std::size_t layer);

}  // namespace tessera::distributed::internal
