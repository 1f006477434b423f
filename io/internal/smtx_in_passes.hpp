#pragma once

#include <cstdint>
#include <string>

#include "tessera/io/internal/mtx_entries.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::io::internal {

// Writes the pattern of a file as .smtx text with at most `most_columns` columns in memory, and
// returns the number of places.
std::int64_t write_smtx_in_passes(MtxEntries& entries, sparse::Duplicates duplicates,
                                  std::int64_t most_columns, const std::string& path);

}  // namespace tessera::io::internal
