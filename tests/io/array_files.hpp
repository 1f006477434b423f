#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tessera/base/error.hpp"

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

// Calls `read`, which must throw Error of that code, and returns the message.
template <class Read>
std::string message_of(const Read& read, ErrorCode code = ErrorCode::BadInput) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace tessera::io::test
