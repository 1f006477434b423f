#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/io/internal/mtx_header.hpp"
#include "tessera/io/internal/text_source.hpp"

namespace tessera::io::internal {

// Neighbouring entries of a file, from 0; the mirror image of an entry follows it.
struct MtxBatch {
  std::span<const std::int32_t> row, col;
  std::span<const double> value;       // 1 for a pattern
  std::span<const std::int32_t> line;  // of the entry, counted from lines_before + 1
  std::int64_t lines_before = 0;

  std::size_t size() const { return row.size(); }
};

// The entries of a Matrix Market file, which can be read again and again. The text is read in
// pieces, which several threads parse at a time, so memory does not depend on its length. The text
// and the name must outlive the object, which one thread may use at a time.
class MtxEntries {
 public:
  // Reads the header; throws the errors of read_mtx.
  MtxEntries(const TextSource& text, std::string_view name,
             Precision precision = Precision::Double);
  ~MtxEntries();

  const MtxHeader& header() const { return header_; }
  const std::string& name() const { return name_; }
  Executor& executor() const { return *executor_; }

  // Passes on all entries in the order of the file, those of an array without zeros and mirror
  // images included. Throws the errors of read_mtx for the first line that is wrong; what was
  // passed on before is then right.
  void read(const std::function<void(const MtxBatch&)>& take);

 private:
  struct Piece;
  class ArrayPlace;
  void parse(Piece& piece, std::int64_t lines_before, std::int64_t most) const;
  void pass_on(const Piece& piece, std::int64_t lines_before, ArrayPlace& place,
               const std::function<void(const MtxBatch&)>& take) const;
  [[noreturn]] void fail_at_end(std::int64_t lines, std::int64_t entries) const;

  const TextSource& text_;
  std::string name_;
  MtxHeader header_;
  std::unique_ptr<Executor> executor_;
  std::vector<Piece> pieces_;  // scratch
};

}  // namespace tessera::io::internal
