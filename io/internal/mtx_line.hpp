#pragma once

#include <cstdint>
#include <string_view>

#include "tessera/io/internal/mtx_header.hpp"
#include "tessera/io/internal/text.hpp"

namespace tessera::io::internal {

// An entry of a coordinate file, counted from 0, or a value of an array file.
struct MtxEntry {
  std::int32_t row = 0, col = 0;
  double value = 1;
};

// Returns the entry of the current line. Fails with the errors of read_mtx.
MtxEntry read_mtx_entry(const Lines& lines, const MtxHeader& header);

// Reads an entry in the form in which programs write it: numbers without a plus sign, blanks
// between them, and the end of the line. Moves `at` after the line end and returns true; returns
// false, with `at` where it was, for all other lines, right ones and wrong ones.
bool take_plain_entry(const char*& at, const char* end, const MtxHeader& header, MtxEntry& entry);

}  // namespace tessera::io::internal
