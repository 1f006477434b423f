#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tessera/io/array.hpp"
#include "tessera/io/internal/text_source.hpp"
#include "tessera/json/value.hpp"

namespace tessera::io::internal {

// The part of a safetensors file before its data.
struct SafetensorsHead {
  std::vector<TensorInfo> tensors;  // in the order of their data
  json::Value notes;                // "__metadata__" as it was given; null if there is none
  std::int64_t data_begin = 0;      // offset of the data in the file
};

// Reads the head of a file whose data are not looked at. Throws the errors of list_safetensors.
SafetensorsHead read_safetensors_head(const TextSource& file, std::string_view name);

}  // namespace tessera::io::internal
