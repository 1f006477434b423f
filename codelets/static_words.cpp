#include "tessera/codelets/static_words.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>
#include <utility>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/static_split.hpp"
#include "tessera/codelets/internal/static_walk.hpp"

namespace tessera::codelets {
namespace {

using internal::kStaticBlockHeader, internal::kStaticBlockRow, internal::kStaticElementHeader;

template <class Word>
class Writer {
 public:
  explicit Writer(std::byte* words) : words_(reinterpret_cast<Word*>(words)) {}

  void add(std::int64_t value, std::string_view name) {
    if (value < 0 || value > std::int64_t{std::numeric_limits<Word>::max()})
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("static words: {} is {} and words have {} bits; use more tiles, more "
                              "parts of the batch or a machine with wider words",
                              name, value, 8 * sizeof(Word)));
    *words_++ = static_cast<Word>(value);
  }

 private:
  Word* words_;
};

template <class Word>
void write_workers(const StaticForm& form, const StaticBlocks& blocks, Writer<Word>& out) {
  const ElementSplit split = element_split(blocks.rows(), form.z, form.z_grain, form.workers);
  const auto blocks_of = [&](std::int64_t row) {
    return blocks.row_begin[std::size_t(row) + 1] - blocks.row_begin[std::size_t(row)];
  };
  std::int64_t written = 0;
  for (const Range z : {Range{0, split.z}, Range{split.z, form.z}}) {
    if (z.size() == 0) continue;
    deal_rows(split, blocks.rows(), blocks.blocks(), blocks_of, [&](Range rows, std::int64_t) {
      const std::int64_t first = blocks.row_begin[std::size_t(rows.begin)];
      out.add(rows.size(), "the number of a worker's rows");
      out.add(rows.begin + first, "the place of a worker's words");
      out.add(first, "the place of a worker's values");
      out.add(z.size(), "the number of a worker's batch columns");
      out.add(z.begin, "a worker's first batch column");
      out.add(rows.begin, "a worker's first row");
      ++written;
    });
  }
  for (; written < form.workers; ++written)
    for (std::int64_t i = 0; i < kStaticElementHeader; ++i) out.add(0, "an idle worker");
}

template <class Word>
void write_elements(const StaticForm& form, const StaticBlocks& blocks, Writer<Word> out) {
  write_workers(form, blocks, out);
  const std::int64_t scale = internal::column_scale(form);
  for (std::size_t row = 0; row < std::size_t(blocks.rows()); ++row) {
    const auto begin = blocks.row_begin[row], end = blocks.row_begin[row + 1];
    out.add(end - begin - internal::uncounted_columns(form.type), "the columns of a row");
    for (auto i = begin; i < end; ++i)
      out.add(blocks.column[std::size_t(i)] * scale, "the place of a column");
  }
}

template <class Word>
void write_blocks(const StaticForm& form, const StaticBlocks& blocks, Writer<Word> out) {
  for (std::int64_t i = 0; i < form.workers; ++i) {
    const Range z = share_of(form.z, 1, form.workers, i);
    out.add(z.begin, "a worker's first batch column");
    out.add(z.size(), "the number of a worker's batch columns");
  }
  out.add(blocks.rows() - 1, "the number of rows");
  const std::int64_t scale = internal::column_scale(form);
  for (std::size_t row = 0; row < std::size_t(blocks.rows()); ++row) {
    const auto begin = blocks.row_begin[row], end = blocks.row_begin[row + 1];
    out.add(std::int64_t(row) * scale, "the place of a row");
    out.add(end - begin - 1, "the blocks of a row");
    for (auto i = begin; i < end; ++i)
      out.add(blocks.column[std::size_t(i)] * scale, "the place of a column");
  }
}

}  // namespace

std::int64_t static_word_count(const StaticForm& form, std::int64_t rows, std::int64_t blocks) {
  if (rows == 0) return 0;
  if (form.block.is_element()) return form.workers * kStaticElementHeader + rows + blocks;
  return form.workers * kStaticBlockHeader + 1 + rows * kStaticBlockRow + blocks;
}

void write_static_words(const StaticForm& form, const StaticBlocks& blocks, std::byte* words) {
  if (blocks.rows() == 0) return;
  internal::with_word(form, [&]<class Word>(Word) {
    const Writer<Word> out(words);
    if (form.block.is_element())
      write_elements(form, blocks, out);
    else
      write_blocks(form, blocks, out);
  });
}

namespace {

// The sides of a tile's part of R, in blocks.
struct StaticSides {
  std::int64_t rows = 0, columns = 0;
};

StaticSides sides_of(const StaticForm& form, Operation operation, const KernelArgs& args) {
  const bool gradient = operation == Operation::GradW;
  const std::int64_t rows = gradient ? args.in.rows : args.out.rows;
  const std::int64_t columns = gradient ? args.in_s.rows : args.in.rows;
  return {rows / form.block.rows, columns / form.block.cols};
}

template <class Word>
class Check {
 public:
  Check(const StaticForm& form, const StaticSides& sides, const KernelArgs& args,
        const BucketCapacity& capacity)
      : form_(form),
        sides_(sides),
        capacity_(capacity),
        words_(static_cast<const Word*>(args.meta)) {}

  std::optional<WordsFault> run() {
    if (capacity_.words == 0) return std::nullopt;
    const bool element = form_.block.is_element();
    return (element ? elements() : blocks()) ? std::nullopt : std::optional(fault_);
  }

 private:
  bool has(std::int64_t at, std::int64_t count) const {
    return count >= 0 && at >= 0 && at + count <= capacity_.words;
  }
  bool fail(std::int64_t at, std::string_view what) {
    fault_ = {at, what};
    return false;
  }
  bool z_fits(std::int64_t first, std::int64_t size) const { return first + size <= form_.z; }

  bool elements() {
    if (!has(0, form_.workers * kStaticElementHeader)) return fail(0, "no table of workers");
    for (std::int64_t i = 0; i < form_.workers; ++i) {
      const internal::StaticWorker worker = internal::static_worker(words_, i);
      const std::int64_t at = i * kStaticElementHeader;
      if (!z_fits(worker.first_z, worker.z)) return fail(at, "batch columns that cannot be");
      if (worker.first_row + worker.rows > sides_.rows) return fail(at, "row outside the tile");
      if (!worker_rows(worker)) return false;
    }
    return true;
  }

  bool worker_rows(const internal::StaticWorker& worker) {
    std::int64_t at = form_.workers * kStaticElementHeader + worker.first_word;
    std::int64_t value = worker.first_value;
    for (std::int64_t r = 0; r < worker.rows; ++r) {
      if (!has(at, 1)) return fail(at, "row outside the words");
      const std::int64_t columns = words_[at] + internal::uncounted_columns(form_.type);
      if (!row(++at, columns, value)) return false;
      at += columns;
      value += columns;
    }
    return true;
  }

  // Checks the columns of a row, and that there are so many values.
  bool row(std::int64_t at, std::int64_t columns, std::int64_t first) {
    if (!has(at, columns)) return fail(at, "columns outside the words");
    if ((first + columns) * form_.block.area() > capacity_.values)
      return fail(at, "more values than there are");
    const std::int64_t scale = internal::column_scale(form_);
    for (std::int64_t i = at; i < at + columns; ++i)
      if (words_[i] % scale != 0 || words_[i] / scale >= sides_.columns)
        return fail(i, "column outside the tile");
    return true;
  }

  bool blocks() {
    std::int64_t at = form_.workers * kStaticBlockHeader, first = 0;
    if (!has(0, at + 1)) return fail(0, "no table of workers");
    const internal::StaticZ z = internal::static_z(form_, words_);
    if (!z_fits(z.begin, z.size)) return fail(0, "batch columns that cannot be");
    const std::int64_t rows = std::int64_t{words_[at++]} + 1, scale = form_.z / form_.z_grain;
    for (std::int64_t r = 0; r < rows; ++r) {
      if (!has(at, kStaticBlockRow)) return fail(at, "row outside the words");
      if (words_[at] % scale != 0 || words_[at] / scale >= sides_.rows)
        return fail(at, "row outside the tile");
      const std::int64_t blocks = std::int64_t{words_[at + 1]} + 1;
      if (!row(at + kStaticBlockRow, blocks, first)) return false;
      at += kStaticBlockRow + blocks;
      first += blocks;
    }
    return true;
  }

  StaticForm form_;
  StaticSides sides_;
  BucketCapacity capacity_;
  const Word* words_;
  WordsFault fault_;
};

}  // namespace

std::optional<WordsFault> check_static_words(const StaticForm& form, Operation operation,
                                             const KernelArgs& args,
                                             const BucketCapacity& capacity) {
  const StaticSides sides = sides_of(form, operation, args);
  return internal::with_word(
      form, [&]<class Word>(Word) { return Check<Word>(form, sides, args, capacity).run(); });
}

}  // namespace tessera::codelets
