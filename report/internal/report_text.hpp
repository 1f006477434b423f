#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/base/units.hpp"

// What the reports of modelled machines and of this computer say in the same words.
namespace tessera::report::internal {

using TextOut = std::back_insert_iterator<std::string>;

// 1234567 -> "1,234,567", for n >= 0
std::string grouped(std::int64_t n);
// "624.0 KiB"
std::string binary_size(Bytes bytes);
// "elements" or "4x4 blocks"
std::string block_name(BlockShape block);

// "label     part; part; part": whole parts, on lines of at most 100 columns where that can be.
void write_parts(std::string_view label, const std::vector<std::string>& parts, TextOut out);
// The lines of weights and layer.
void write_layer(const std::string& source, const Problem& problem, TextOut out);

}  // namespace tessera::report::internal
