#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"

// The lines of text that reports of modelled machines and of this computer share.
namespace tessera::report::internal {

using TextOut = std::back_insert_iterator<std::string>;

// Returns n >= 0 with its digits in groups of three: 1234567 gives "1,234,567".
std::string grouped(std::int64_t n);

// Returns a size with a binary unit, such as "624.0 KiB".
std::string binary_size(Bytes bytes);

// Returns "elements", or "4x4 blocks" for blocks.
std::string block_name(BlockShape block);

// Writes "label     part; part; part" on lines of at most 100 columns. A part is never broken, so a
// long one may exceed that.
void write_parts(std::string_view label, const std::vector<std::string>& parts, TextOut out);

// Writes the lines that describe the weights and the layer.
void write_layer(const std::string& source, const Problem& problem, TextOut out);

}  // namespace tessera::report::internal
