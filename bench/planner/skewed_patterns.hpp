#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

// Patterns that are far from uniform, each in its own way.
//   PowerLawRows            a few rows, anywhere, hold most
//   PowerLawRowsAndColumns  a few rows and a few columns do
//   Banded                  a band along the diagonal, half full
//   SawTooth                rows fill up evenly and fall back, four times
//   DenseCorner             half of all lies in a sixteenth of the places
enum class Skew { PowerLawRows, PowerLawRowsAndColumns, Banded, SawTooth, DenseCorner };
inline constexpr std::array kSkews = {Skew::PowerLawRows, Skew::PowerLawRowsAndColumns,
                                      Skew::Banded, Skew::SawTooth, Skew::DenseCorner};
std::string to_string(Skew skew);

struct PatternRequest {
  std::int64_t rows = 0, cols = 0;  // elements, whole blocks
  BlockShape block;
  double density = 0;  // blocks stored / all, in [0, 1]
};

// A matrix with exactly round(density * places) blocks, places drawn without replacement with the
// weights of the skew (what is full stays full and the rest goes elsewhere); values +1 or -1.
// O(places) with a logarithm each and 16 bytes of memory each.
sparse::Csr<float> skewed_pattern(Skew skew, const PatternRequest& request, std::uint64_t seed);

}  // namespace tessera::bench
