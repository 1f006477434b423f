#pragma once

#include <string>

#include "tessera/base/block_shape.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/read.hpp"

namespace tessera::io {

// The choices that some formats leave to the writer of a matrix.
struct WriteOptions {
  BlockShape block;               // of an .npz file; the sides are padded to whole blocks
  std::string tensor = "weight";  // name in a .safetensors file
};

// Returns the ending of a file's name in lower case, with its dot.
std::string ending_of(const std::string& path);

// Returns the bytes of a matrix in the format that the ending of the path selects: .smtx (pattern
// only), .mtx, .npz, .npy or .safetensors. `type` is that of the values where the format has it.
// Throws Error{InvalidArgument} for another ending and for a dense file of more than 2^28 elements.
std::string matrix_bytes(const std::string& path, const ReadMatrix& file, ElementType type,
                         const WriteOptions& options);

}  // namespace tessera::io
