#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tessera/base/write_file.hpp"
#include "tessera/train/data/idx.hpp"

namespace tessera::test {

inline std::string big_endian(std::uint32_t n) {
  return {char(n >> 24), char(n >> 16 & 0xff), char(n >> 8 & 0xff), char(n & 0xff)};
}

// Writes one part of a data set of pictures of 4 x 5 pixels.
inline void write_part(const std::string& start, const train::LabelledImages& images) {
  const auto count = std::uint32_t(images.count());
  tessera::write_file(start + "-images-idx3-ubyte",
                      big_endian(0x803) + big_endian(count) + big_endian(4) + big_endian(5) +
                          std::string(images.pixels.begin(), images.pixels.end()));
  tessera::write_file(start + "-labels-idx1-ubyte",
                      big_endian(0x801) + big_endian(count) +
                          std::string(images.labels.begin(), images.labels.end()));
}

// Returns the figures of a run but the seconds, which are measured.
inline nlohmann::json without_seconds(const std::string& text) {
  nlohmann::json figures = nlohmann::json::parse(text);
  nlohmann::json& report = figures["sparse"];
  report.erase("seconds");
  for (const char* list : {"epochs", "rewires"})
    for (nlohmann::json& line : report[list]) line.erase("seconds");
  if (figures.contains("step_on_machine"))
    for (const char* key : {"host_seconds", "steps_for_5_percent", "steps_to_beat_dense"})
      figures["step_on_machine"]["rewire"].erase(key);
  return figures;
}

}  // namespace tessera::test
