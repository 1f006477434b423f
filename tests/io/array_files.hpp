#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tessera/tests/support/message_of.hpp"

// Files of arrays that tests build byte by byte.
namespace tessera::io::test {

// Returns the header of a .npy array as a Python dict.
inline std::string dict(const std::string& descr, const std::string& order,
                        const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

// Returns a format 1 array as NumPy writes it.
inline std::string npy(const std::string& dict, const std::string& data) {
  std::string header = dict;
  header.append(117 - header.size(), ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + data;
}

inline std::string bytes(std::initializer_list<int> list) {
  std::string text;
  for (const int b : list) text += char(b);
  return text;
}

inline std::string safetensors(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += char(std::uint64_t(header.size()) >> (8 * i));
  return file + header + data;
}

using tessera::test::message_of;

}  // namespace tessera::io::test
