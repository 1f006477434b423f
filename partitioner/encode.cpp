#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/balance.hpp"
#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/partitioner/internal/record_writer.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::partitioner {
namespace {

using internal::Holdings;

template <class T>
void check_same_shape(const sparse::Csr<T>& matrix, const TileGrid& grid) {
  if (matrix.rows == grid.size.x && matrix.cols == grid.size.y && matrix.block == grid.block)
    return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("encode: the matrix is {} x {} in blocks of {} x {}, the grid is for {} x "
                  "{} in blocks of {} x {}; re-block the matrix or plan for it",
                  matrix.rows, matrix.cols, matrix.block.rows, matrix.block.cols, grid.size.x,
                  grid.size.y, grid.block.rows, grid.block.cols));
}

// The lists of the result at the width of the machine, with the sizes of the grid.
template <class Word>
struct Lists {
  std::vector<Word>&meta, &grad_a;
  std::vector<std::int32_t>& source;
};

// Storage that is there already is used again.
template <class Word>
Lists<Word> resize_lists(const TileGrid& grid, Buckets& buckets) {
  const auto at_width = [](auto& words) -> std::vector<Word>& {
    auto* same = std::get_if<std::vector<Word>>(&words);
    return same ? *same : words.template emplace<std::vector<Word>>();
  };
  const auto size = [&grid](std::int64_t each) {
    return static_cast<std::size_t>(grid.buckets() * each);
  };
  Lists<Word> lists{at_width(buckets.meta), at_width(buckets.grad_a_meta), buckets.source};
  lists.meta.resize(size(grid.meta_words));
  lists.grad_a.resize(size(grid.grad_a_words));
  lists.source.resize(size(grid.blocks));
  return lists;
}

// Writes what the holdings say, bucket by bucket: every word and slot, whatever stood there.
// Several objects may write different buckets at once.
template <class Word>
class BucketWriter {
 public:
  BucketWriter(const Holdings& holdings, const Lists<Word>& lists)
      : holdings_(holdings), grid_(holdings.grid()), lists_(lists), writer_(grid_) {}

  void write(std::int64_t bucket) {
    const auto part = [bucket](auto& list, std::int64_t size) {
      return std::span(list).subspan(static_cast<std::size_t>(bucket * size),
                                     static_cast<std::size_t>(size));
    };
    words_ = {part(lists_.meta, grid_.meta_words)};
    grad_a_words_ = {part(lists_.grad_a, grid_.grad_a_words)};
    source_ = {part(lists_.source, grid_.blocks)};
    internal::record_cells(holdings_, bucket, cells_);
    for (const std::int32_t cell : cells_) write_record(bucket, cell);
    words_.fill_rest(0);
    grad_a_words_.fill_rest(0);
    source_.fill_rest(-1);
    count();
  }

  const SpillStats& stats() const { return stats_; }

 private:
  // Part of a list that belongs to one bucket, written from front to back.
  template <class T>
  struct Room {
    std::span<T> all;
    std::size_t used = 0;

    std::int64_t free() const { return static_cast<std::int64_t>(all.size() - used); }
    T* next() const { return all.data() + used; }
    void advance_to(const T* end) { used = static_cast<std::size_t>(end - all.data()); }
    void fill_rest(T value) const {
      std::fill(all.begin() + std::ptrdiff_t(used), all.end(), value);
    }
  };

  void write_record(std::int64_t bucket, std::int32_t cell) {
    gatherer_.gather(holdings_, bucket, cell, record_);
    TESSERA_ASSERT(writer_.forward_room(record_) + codelets::kEndMarkerWords <= words_.free() &&
                   record_.blocks <= source_.free());
    words_.advance_to(writer_.write_forward(record_, words_.next()));
    for (const internal::Run& run : record_.runs) {
      std::iota(source_.next(), source_.next() + run.count, run.begin);
      source_.used += static_cast<std::size_t>(run.count);
    }
    if (grid_.separate_grad_a) write_grad_a_record();
    stats_.blocks += record_.blocks;
    ++stats_.records;
    if (cell != holdings_.cell_of(bucket)) stats_.moved_blocks += record_.blocks;
  }

  // By way of a list of its own: how many rows it has, and so its length, shows only at the end.
  void write_grad_a_record() {
    scratch_.resize(static_cast<std::size_t>(writer_.grad_a_room(record_)));
    const Word* end = writer_.write_grad_a(record_, scratch_.data());
    TESSERA_ASSERT(end - scratch_.data() + codelets::kEndMarkerWords <= grad_a_words_.free());
    grad_a_words_.advance_to(
        std::copy(static_cast<const Word*>(scratch_.data()), end, grad_a_words_.next()));
  }

  void count() {
    const auto raise = [](std::int64_t& most, std::size_t n, std::int64_t more) {
      most = std::max(most, static_cast<std::int64_t>(n) + more);
    };
    raise(stats_.fullest_words, words_.used, codelets::kEndMarkerWords);
    raise(stats_.fullest_blocks, source_.used, 0);
    if (grid_.separate_grad_a)
      raise(stats_.fullest_grad_a_words, grad_a_words_.used, codelets::kEndMarkerWords);
  }

  const Holdings& holdings_;
  TileGrid grid_;
  Lists<Word> lists_;
  internal::RecordWriter<Word> writer_;
  internal::Gatherer gatherer_;
  internal::RecordRows record_;
  std::vector<std::int32_t> cells_;
  std::vector<Word> scratch_;
  Room<Word> words_, grad_a_words_;
  Room<std::int32_t> source_;
  SpillStats stats_;
};

void add(SpillStats& sum, const SpillStats& more) {
  sum.blocks += more.blocks;
  sum.moved_blocks += more.moved_blocks;
  sum.records += more.records;
  sum.fullest_words = std::max(sum.fullest_words, more.fullest_words);
  sum.fullest_blocks = std::max(sum.fullest_blocks, more.fullest_blocks);
  sum.fullest_grad_a_words = std::max(sum.fullest_grad_a_words, more.fullest_grad_a_words);
}

template <class Word>
void write_buckets(const Holdings& holdings, Executor& executor, Buckets& buckets) {
  const TileGrid& grid = holdings.grid();
  buckets.grid = grid;
  buckets.travel = internal::travel_of(holdings);
  const Lists<Word> lists = resize_lists<Word>(grid, buckets);
  // A writer has lists that must grow, so it is given many buckets; eight groups a thread even out.
  const std::int64_t groups = std::min<std::int64_t>(grid.buckets(), 8 * executor.threads());
  std::vector<SpillStats> stats(static_cast<std::size_t>(groups));
  executor.for_each(groups, [&](std::int64_t g) {
    BucketWriter<Word> writer(holdings, lists);
    const Range range{g * grid.buckets() / groups, (g + 1) * grid.buckets() / groups};
    for (std::int64_t b = range.begin; b < range.end; ++b) writer.write(b);
    stats[static_cast<std::size_t>(g)] = writer.stats();
  });
  buckets.stats = {};
  for (const SpillStats& s : stats) add(buckets.stats, s);
}

std::optional<Misfit> encode_pieces(const internal::Pieces& pieces, const TileGrid& grid,
                                    bool forced, Executor& executor, Buckets& buckets) {
  Holdings holdings(pieces, grid);
  const auto left = internal::balance(holdings, forced);
  if (!left.empty()) return internal::make_misfit(holdings, left, forced);
  if (grid.word_bits == 16)
    write_buckets<std::uint16_t>(holdings, executor, buckets);
  else
    write_buckets<std::uint32_t>(holdings, executor, buckets);
  return std::nullopt;
}

}  // namespace

template <class T>
std::optional<Misfit> encode_into(Buckets& buckets, const sparse::Csr<T>& matrix,
                                  const TileGrid& grid, Executor& executor,
                                  const EncodeOptions& options) {
  check(grid);
  check_same_shape(matrix, grid);
  if (options.force_spills && grid.buckets() < 2)
    throw Error(ErrorCode::InvalidArgument,
                "encode: forced spills need at least two buckets, the grid has one");
  sparse::check_all_but_columns(matrix);
  const auto pieces = internal::cut_to_pieces({matrix.row_begin, matrix.col}, grid, executor);
  if (!pieces) {
    sparse::check(matrix);  // throws, and says what is wrong
    TESSERA_ASSERT(pieces.has_value());
  }
  return encode_pieces(*pieces, grid, options.force_spills, executor, buckets);
}

template <class T>
EncodeResult encode(const sparse::Csr<T>& matrix, const TileGrid& grid,
                    const EncodeOptions& options) {
  const auto alone = make_executor(ExecutorKind::Threads, 1);
  Buckets buckets;
  EncodeResult result;
  result.misfit = encode_into(buckets, matrix, grid, *alone, options);
  if (!result.misfit) result.buckets = std::move(buckets);
  return result;
}

#define TESSERA_ENCODE(T)                                                                      \
  template EncodeResult encode(const sparse::Csr<T>&, const TileGrid&, const EncodeOptions&);  \
  template std::optional<Misfit> encode_into(Buckets&, const sparse::Csr<T>&, const TileGrid&, \
                                             Executor&, const EncodeOptions&);
TESSERA_ENCODE(float)
TESSERA_ENCODE(double)
#undef TESSERA_ENCODE

}  // namespace tessera::partitioner
