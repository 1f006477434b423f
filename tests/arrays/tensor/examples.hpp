#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/arrays/tensor/coo_tensor.hpp"

namespace tessera::test {

// {"002", "310"} -> 0, 0, 2, 3, 1, 0.
inline std::vector<std::int32_t> coordinates(const std::vector<std::string>& entries) {
  std::vector<std::int32_t> flat;
  for (const std::string& entry : entries)
    for (const char digit : entry) flat.push_back(digit - '0');
  return flat;
}

template <class T = float>
arrays::CooTensor<T> tensor(std::vector<std::int64_t> shape,
                            const std::vector<std::string>& entries, std::vector<T> values) {
  return arrays::CooTensor<T>(std::move(shape), coordinates(entries), std::move(values));
}

// The tensor of COO-01 to COO-05.
inline arrays::CooTensor<float> square() {
  return tensor<float>({5, 5}, {"03", "12", "21", "34"}, {1, 2, 3, 4});
}

// The tensor of COO-07 and COO-08; `eighth` is "301", in COO-09 and COO-13 "302".
inline arrays::CooTensor<float> box(const std::string& eighth = "301") {
  return tensor<float>({4, 2, 3}, {"002", "011", "100", "101", "112", "201", "212", eighth, "310"},
                       {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

using Shape = std::vector<std::int64_t>;

}  // namespace tessera::test
