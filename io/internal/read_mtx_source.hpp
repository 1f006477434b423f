#pragma once

#include <string_view>

#include "tessera/io/internal/text_source.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/read_options.hpp"

namespace tessera::io::internal {

// Reads as read_mtx does, from a text that need not be in memory. A text whose entries are not in
// order is read twice. The most memory is the matrix and its row pointers once more, beside the
// buffers of a few pieces of the text, and a copy of the longest row for each thread.
ReadMatrix read_mtx_source(const TextSource& text, std::string_view name,
                           const ReadOptions& options);

}  // namespace tessera::io::internal
