#include "tessera/io/mtx_pattern.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/io/internal/mtx_entries.hpp"
#include "tessera/io/internal/smtx_in_passes.hpp"
#include "tessera/io/internal/text_source.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kLeast = 64 * kMiB;

// The pieces of the text that are parsed at a time on eight threads, with their entries, and the
// text that is written next.
constexpr std::int64_t kBuffers = 28 * kMiB;

// The row pointers, those without places that are given twice, and two numbers for each row of a
// range.
constexpr std::int64_t kBytesOfRow = 4 * 8;

// A column, and its copy while a row is sorted.
constexpr std::int64_t kBytesOfColumn = 2 * 4;

constexpr std::int64_t kLeastColumns = kMiB;

std::int64_t most_columns(std::int64_t rows, const std::string& path, std::int64_t memory) {
  if (memory < kLeast)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("{}: a conversion within {} bytes; the least is {}", path, memory, kLeast));
  const std::int64_t columns = (memory - kBuffers - rows * kBytesOfRow) / kBytesOfColumn;
  if (columns >= kLeastColumns) return columns;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("{}: its {} rows need {} MiB of memory; {} are allowed", path, rows,
                  (kBuffers + rows * kBytesOfRow + kLeastColumns * kBytesOfColumn) / kMiB + 1,
                  memory / kMiB));
}

}  // namespace

struct MtxPattern::State {
  State(const std::string& path, const PatternOptions& o)
      : text(path), entries(text, path), options(o) {}

  internal::TextOfFile text;
  internal::MtxEntries entries;
  PatternOptions options;
};

MtxPattern::MtxPattern(const std::string& path, const PatternOptions& options)
    : state_(std::make_unique<State>(path, options)) {
  most_columns(rows(), path, options.memory);  // refuses what cannot be
}

MtxPattern::~MtxPattern() = default;

std::int64_t MtxPattern::rows() const { return state_->entries.header().rows; }
std::int64_t MtxPattern::cols() const { return state_->entries.header().cols; }
bool MtxPattern::has_values() const { return state_->entries.header().has_values(); }

std::int64_t MtxPattern::write_smtx(const std::string& path) {
  const std::int64_t columns = most_columns(rows(), state_->entries.name(), state_->options.memory);
  return internal::write_smtx_in_passes(state_->entries, state_->options.duplicates, columns, path);
}

}  // namespace tessera::io
