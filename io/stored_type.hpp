#pragma once

#include <string>

#include "tessera/io/array.hpp"

namespace tessera::io {

// Returns the type of the numbers in a file of read_matrix(): that of the array in .npy and
// .safetensors, that of the values in .npz, F64 for .mtx, and Bool for files of patterns (.smtx,
// .txt). Throws the errors of read_matrix(). Reads the whole file.
ElementType stored_type(const std::string& path);

}  // namespace tessera::io
