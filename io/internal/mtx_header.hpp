#pragma once

#include <cstdint>
#include <string_view>

#include "tessera/io/internal/text.hpp"
#include "tessera/io/internal/text_source.hpp"

namespace tessera::io::internal {

enum class MtxField { Real, Integer, Pattern };
enum class MtxSymmetry { General, Symmetric, Skew };

// The banner and the sizes of a Matrix Market file.
struct MtxHeader {
  bool is_array = false;
  MtxField field = MtxField::Real;
  MtxSymmetry symmetry = MtxSymmetry::General;
  std::int64_t rows = 0, cols = 0;
  std::int64_t entries = 0;  // stored in the file
  std::int64_t begin = 0;    // offset of the first byte after the line of sizes
  std::int64_t lines = 0;    // up to and with the line of sizes

  Precision precision = Precision::Double;  // of the values that are passed on

  bool has_values() const { return field != MtxField::Pattern; }
};

// Reads the start of a text: a page, and more only if the comments are longer. Throws the errors of
// read_mtx for the banner and the sizes.
MtxHeader read_mtx_header(const TextSource& text, std::string_view name);

// Fails if a word follows.
void refuse_extra(const Lines& lines, std::string_view rest, std::string_view after);

}  // namespace tessera::io::internal
