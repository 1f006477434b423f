#include "tessera/partitioner/internal/record_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/codelets/bucket_layout.hpp"

namespace tessera::partitioner::internal {

using codelets::kWords;

void reject_word(std::int64_t bucket, std::int64_t word, const std::string& reason) {
  throw Error(ErrorCode::BadInput, fmt::format("bucket {}, word {}: {}", bucket, word, reason));
}

template <class Word>
RecordReader<Word>::RecordReader(const TileGrid& grid)
    : grid_(grid),
      scale_(column_scale(grid)),
      writer_(grid),
      row_mark_(static_cast<std::size_t>(grid.x_range(0).size() / grid.block.rows)) {}

template <class Word>
void RecordReader<Word>::start(std::int64_t bucket, std::span<const Word> meta,
                               std::span<const Word> grad_a) {
  bucket_ = bucket;
  meta_ = meta;
  grad_a_ = grad_a;
  at_ = grad_a_at_ = 0;
}

template <class Word>
void RecordReader<Word>::expect(bool good, std::int64_t at, const char* reason) const {
  if (!good)
    reject_word(bucket_, at,
                fmt::format("{}; it is {}", reason,
                            at < static_cast<std::int64_t>(meta_.size()) ? word(at) : -1));
}

// Reads cell, length and rows of the record at at_. Fields that are not needed to find the rows are
// compared later.
template <class Word>
typename RecordReader<Word>::Frame RecordReader<Word>::read_frame(RecordRows& record) {
  const bool element = grid_.block.is_element();
  const std::int64_t header =
      element ? kWords<codelets::ElementHeader> : kWords<codelets::BlockHeader>;
  const auto end = static_cast<std::int64_t>(meta_.size()) - codelets::kEndMarkerWords;
  expect(word(at_) <= grid_.splits.x * grid_.splits.y, at_, "no cell has this sub-group id");
  expect(at_ + header <= end, at_, "the bucket ends inside this record's header");
  record.x = (word(at_) - 1) / grid_.splits.y;
  record.y = (word(at_) - 1) % grid_.splits.y;
  Frame frame;
  frame.length = word(at_ + 4);
  expect(frame.length >= header && at_ + frame.length <= end, at_ + 4,
         "the record must be longer than its header and end before the bucket's last word");
  frame.rows = word(at_ + (element ? 6 : 5)) + 1;
  const std::int64_t at_output = at_ + (element ? 7 : 6);
  frame.first_output =
      element ? word(at_output) : header + kWords<codelets::GradWWorkerEntry> * word(at_output);
  expect(frame.first_output >= header && frame.first_output <= frame.length, at_output,
         "the first row must lie behind the header and inside the record");
  return frame;
}

// Reads the row at `at` and moves `at` to the word after it.
template <class Word>
void RecordReader<Word>::read_row(const Frame& frame, std::int64_t& at, RecordRows& record) {
  const bool element = grid_.block.is_element();
  const std::int64_t end = at_ + frame.length, first = at + kWords<codelets::OutputEntry>;
  expect(first < end, at, "the record ends inside a row");
  const std::int64_t row = word(at) / grid_.block.rows, count = word(at + 1) + (element ? 0 : 1);
  expect(
      word(at) % grid_.block.rows == 0 && row < grid_.x_range(record.x).size() / grid_.block.rows,
      at, "the row must be a multiple of the block's rows and inside the cell");
  expect(count >= 1 && first + count <= end, at + 1,
         "a row must have non-zeros and end inside the record");
  std::int64_t& seen = row_mark_[static_cast<std::size_t>(row)];
  expect(seen != mark_, at, "the row stands twice in its record");
  seen = mark_;
  const auto begin = static_cast<std::int32_t>(col_.size());
  runs_.push_back({begin, static_cast<std::int32_t>(count), static_cast<std::int32_t>(row)});
  record.rows.push_back({runs_.back().row, begin, runs_.back().count});
  const std::int64_t cols = grid_.y_range(record.y).size() / grid_.block.cols;
  col_.resize(col_.size() + static_cast<std::size_t>(count));
  if (!read_columns(meta_.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                    cols, col_.data() + begin))
    reject_columns(first, count, cols);
  at = first + count;
}

// Returns false if a word is no multiple of the scale, or if columns do not ascend inside the cell.
// Division is a multiplication with a factor, rounded to nearest: exact for multiples, and the
// check below finds all other words.
template <class Word>
bool RecordReader<Word>::read_columns(std::span<const Word> words, std::int64_t cols,
                                      std::int32_t* to) const {
  if (words.back() > static_cast<std::uint64_t>((cols - 1) * scale_)) return false;
  const auto scale = static_cast<std::uint32_t>(scale_);
  const double factor = 1.0 / static_cast<double>(scale_);
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    // Words above 2^31 give a wrong result, so the check rejects them as no multiples.
    to[i] = static_cast<std::int32_t>(
        static_cast<double>(static_cast<std::int32_t>(words[i])) * factor + 0.5);
    bad |= static_cast<std::uint32_t>(to[i]) * scale ^ static_cast<std::uint32_t>(words[i]);
  }
  std::int32_t descends = 0;
  for (std::size_t i = 1; i < words.size(); ++i) descends |= words[i] <= words[i - 1];
  return bad == 0 && descends == 0;
}

template <class Word>
void RecordReader<Word>::reject_columns(std::int64_t first, std::int64_t count,
                                        std::int64_t cols) const {
  std::int64_t last = -1;
  for (std::int64_t at = first; at < first + count; ++at) {
    expect(word(at) <= std::numeric_limits<std::int32_t>::max() && word(at) % scale_ == 0 &&
               word(at) / scale_ < cols,
           at, "the column must be a multiple of its scale and inside the cell");
    expect(word(at) > last, at, "columns must ascend inside a row");
    last = word(at);
  }
  assertion_failed("a column that was refused is wrong", __FILE__, __LINE__);
}

template <class Word>
void RecordReader<Word>::compare(std::span<const Word> expected, std::span<const Word> words,
                                 std::int64_t at, const char* which) const {
  const auto room = static_cast<std::int64_t>(words.size()) - at;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(expected.size()); ++i) {
    const auto wanted = expected[static_cast<std::size_t>(i)];
    if (i >= room)
      reject_word(bucket_, at + i, fmt::format("the {} bucket ends inside a record", which));
    if (words[static_cast<std::size_t>(at + i)] != wanted)
      reject_word(bucket_, at + i,
                  fmt::format("in the {} bucket is {}, but the record's rows ask for {}", which,
                              words[static_cast<std::size_t>(at + i)], wanted));
  }
}

template <class Word>
void RecordReader<Word>::expect_zeros(std::span<const Word> words, std::int64_t at,
                                      const char* which) const {
  if (at >= static_cast<std::int64_t>(words.size()))
    reject_word(bucket_, at, fmt::format("the {} bucket has no end marker", which));
  const auto rest = words.subspan(static_cast<std::size_t>(at));
  Word any = 0;
  for (const Word w : rest) any |= w;
  if (any == 0) return;
  const auto bad = std::find_if(rest.begin(), rest.end(), [](Word w) { return w != 0; });
  reject_word(bucket_, at + (bad - rest.begin()),
              fmt::format("behind the end marker of the {} bucket is {}, not 0", which, *bad));
}

template <class Word>
bool RecordReader<Word>::read(RecordRows& record) {
  if (at_ >= static_cast<std::int64_t>(meta_.size()) || word(at_) == 0) {
    expect_zeros(meta_, at_, "forward");
    if (grid_.separate_grad_a) expect_zeros(grad_a_, grad_a_at_, "GradA");
    return false;
  }
  record.rows.clear(), runs_.clear(), col_.clear();
  const Frame frame = read_frame(record);
  ++mark_;
  std::int64_t at = at_ + frame.first_output;
  for (std::int64_t row = 0; row < frame.rows; ++row) read_row(frame, at, record);
  expect(at == at_ + frame.length, at, "the record must end behind its last row");
  record.blocks = std::ssize(col_);
  record.runs = runs_;
  record.col = col_;

  expected_.resize(static_cast<std::size_t>(writer_.forward_room(record)));
  compare({expected_.data(), writer_.write_frame(record, expected_.data())}, meta_, at_, "forward");
  at_ += frame.length;
  if (grid_.separate_grad_a) {
    expected_.resize(static_cast<std::size_t>(writer_.prepare_grad_a(record)));
    const std::span<const Word> expected(expected_.data(), writer_.write_grad_a(expected_.data()));
    compare(expected, grad_a_, grad_a_at_, "GradA");
    grad_a_at_ += std::ssize(expected);
  }
  return true;
}

template class RecordReader<std::uint16_t>;
template class RecordReader<std::uint32_t>;

}  // namespace tessera::partitioner::internal
