#include "tessera/partitioner/saved_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <cstring>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/partitioner/internal/record_list.hpp"

namespace tessera::partitioner {
namespace {

// The first bytes of a file. One that is not ASCII and a line feed show a transfer as text.
constexpr std::string_view kMagic("\x93TSRW\r\n\x1a", 8);
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 8 + 4 + 4 + 8;  // magic, version, checksum, bytes that follow
constexpr std::uint64_t kMostGroups = 1u << 20;

std::uint32_t checksum_of(std::string_view bytes) {
  boost::crc_32_type sum;
  sum.process_bytes(bytes.data(), bytes.size());
  return sum.checksum();
}

[[noreturn]] void refuse(std::string_view name, const std::string& reason) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", name, reason));
}

// Calls visit(field) for every number of a grid, in the order of the file.
template <class Grid, class Visit>
void visit_numbers(Grid& grid, const Visit& visit) {
  for (auto* dims : {&grid.size, &grid.splits})
    for (auto* side : {&dims->g, &dims->x, &dims->y, &dims->z}) visit(*side);
  for (auto* number : {&grid.block.rows, &grid.block.cols, &grid.z_grain, &grid.workers,
                       &grid.word_bits, &grid.meta_words, &grid.grad_a_words, &grid.blocks})
    visit(*number);
}

// The same for statistics.
template <class Stats, class Visit>
void visit_statistics(Stats& stats, const Visit& visit) {
  for (auto* number : {&stats.blocks, &stats.moved_blocks, &stats.records, &stats.fullest_words,
                       &stats.fullest_blocks, &stats.fullest_grad_a_words, &stats.steps,
                       &stats.greedy_steps, &stats.lower_bound_steps, &stats.travel,
                       &stats.cut_rows, &stats.load.value, &stats.uneven_load.value})
    visit(*number);
}

class Writer {
 public:
  template <class T>
  void number(T value) {
    list(std::span(&value, 1));
  }

  // Little-endian, as the computers are that this library runs on.
  template <class T>
  void list(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  template <class T>
  void list(std::span<T> values) {
    list(std::span<const T>(values));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what a Writer wrote. No list is longer than the bytes that are left.
class Reader {
 public:
  Reader(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  template <class T>
  T number(const char* what) {
    T value{};
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  template <class T>
  std::vector<T> list(std::uint64_t count, const char* what) {
    if (count > bytes_.size() / sizeof(T))
      refuse(name_,
             fmt::format("{} are {} numbers, but {} bytes are left", what, count, bytes_.size()));
    std::vector<T> values(count);
    const std::string_view part = take(count * sizeof(T), what);
    if (count > 0) std::memcpy(values.data(), part.data(), part.size());
    return values;
  }

  std::string_view take(std::uint64_t count, const char* what) {
    if (count > bytes_.size()) refuse(name_, fmt::format("the file ends in {}", what));
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }

  void expect_end() const {
    if (!bytes_.empty()) refuse(name_, fmt::format("{} bytes follow the last list", bytes_.size()));
  }

 private:
  std::string_view bytes_, name_;
};

std::uint64_t words_of(const TileGrid& grid, std::int64_t in_a_bucket) {
  return std::uint64_t(checked_mul(grid.buckets(), in_a_bucket, "words of all buckets"));
}

std::uint64_t value_bytes(const TileGrid& grid) {
  const std::int64_t values = checked_mul(grid.blocks, grid.block.area(), "values of a bucket");
  return std::uint64_t(checked_mul(checked_mul(grid.buckets(), values, "values of all buckets"),
                                   bytes_of(grid.data_type), "bytes of all values"));
}

void require(bool holds, const char* what) {
  if (!holds)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("saved weights: {} have not the length that the grid asks for", what));
}

void write_words(const std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>>& words,
                 const TileGrid& grid, std::int64_t in_a_bucket, Writer& to) {
  std::visit(
      [&](const auto& list) {
        require(std::int64_t(8 * sizeof(list[0])) == grid.word_bits || list.empty(), "words");
        require(list.size() == words_of(grid, in_a_bucket), "words");
        to.list(std::span(list));
      },
      words);
}

void write_layout(const SavedLayout& layout, Writer& to) {
  const TileGrid& grid = layout.grid;
  visit_numbers(grid, [&](std::int64_t number) { to.number(number); });
  to.number(std::uint32_t(grid.data_type));
  to.number(std::uint32_t(grid.grad_w));
  to.number(std::uint32_t(grid.separate_grad_a));
  for (const SavedBuckets& buckets : layout.groups) {
    visit_statistics(buckets.stats, [&](std::int64_t number) { to.number(number); });
    write_words(buckets.meta, grid, grid.meta_words, to);
    write_words(buckets.grad_a_meta, grid, grid.grad_a_words, to);
  }
}

void write_pattern(const sparse::Csr<float>& pattern, Writer& to) {
  for (const std::int64_t number :
       {pattern.rows, pattern.cols, pattern.block.rows, pattern.block.cols, pattern.blocks()})
    to.number(number);
  require(std::ssize(pattern.row_begin) == pattern.block_rows() + 1, "patterns");
  to.list(std::span(pattern.row_begin));
  to.list(std::span(pattern.col));
}

sparse::Csr<float> read_pattern(Reader& from, std::string_view name) {
  sparse::Csr<float> pattern;
  std::int64_t blocks = 0;
  for (std::int64_t* number :
       {&pattern.rows, &pattern.cols, &pattern.block.rows, &pattern.block.cols, &blocks})
    *number = from.number<std::int64_t>("the sizes of a pattern");
  if (pattern.rows < 0 || pattern.cols < 0 || blocks < 0 || pattern.block.rows < 1 ||
      pattern.block.cols < 1)
    refuse(name, "a size of a pattern is negative, or a side of its block is below 1");
  pattern.row_begin =
      from.list<std::int64_t>(std::uint64_t(pattern.block_rows()) + 1, "the rows of a pattern");
  pattern.col = from.list<std::int32_t>(std::uint64_t(blocks), "the columns of a pattern");
  return pattern;
}

bool flag(Reader& from, std::string_view name) {
  const auto value = from.number<std::uint32_t>("a grid");
  if (value > 1) refuse(name, fmt::format("a flag of a grid is {}; legal: 0 and 1", value));
  return value == 1;
}

TileGrid read_grid(Reader& from, std::string_view name) {
  TileGrid grid;
  visit_numbers(grid, [&](std::int64_t& number) { number = from.number<std::int64_t>("a grid"); });
  const auto type = from.number<std::uint32_t>("a grid");
  if (type > std::uint32_t(DataType::BFloat16))
    refuse(name, fmt::format("the type of the values has the number {}, which is none", type));
  grid.data_type = DataType(type);
  grid.grad_w = flag(from, name);
  grid.separate_grad_a = flag(from, name);
  try {
    check(grid);
  } catch (const Error& error) {
    refuse(name, error.what());
  }
  return grid;
}

void read_words(const TileGrid& grid, std::int64_t in_a_bucket, Reader& from,
                std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>>& words) {
  const std::uint64_t count = words_of(grid, in_a_bucket);
  if (grid.word_bits == 16)
    words = from.list<std::uint16_t>(count, "the words of buckets");
  else
    words = from.list<std::uint32_t>(count, "the words of buckets");
}

SavedLayout read_layout(std::uint64_t groups, Reader& from, std::string_view name) {
  SavedLayout layout{.grid = read_grid(from, name), .groups = {}};
  for (std::uint64_t g = 0; g < groups; ++g) {
    SavedBuckets& buckets = layout.groups.emplace_back();
    visit_statistics(buckets.stats, [&](std::int64_t& number) {
      number = from.number<std::int64_t>("the statistics of buckets");
      if (number < 0) refuse(name, fmt::format("a statistic of the buckets is {}", number));
    });
    read_words(layout.grid, layout.grid.meta_words, from, buckets.meta);
    read_words(layout.grid, layout.grid.grad_a_words, from, buckets.grad_a_meta);
  }
  return layout;
}

// Returns the bytes behind the header, whose checksum is right.
std::string_view checked_body(std::string_view bytes, std::string_view name) {
  if (bytes.substr(0, kMagic.size()) != kMagic.substr(0, std::min(bytes.size(), kMagic.size())))
    refuse(name, "not a file of encoded weights; write_saved_weights makes one");
  Reader header(bytes, name);
  header.take(kMagic.size(), "its header");
  const auto version = header.number<std::uint32_t>("its header");
  if (version != kVersion)
    refuse(name, fmt::format("encoded weights of version {}; this program reads version {}; encode "
                             "the weights again",
                             version, kVersion));
  const auto checksum = header.number<std::uint32_t>("its header");
  const auto length = header.number<std::uint64_t>("its header");
  const std::string_view body = bytes.substr(kHeaderBytes);
  if (length != body.size())
    refuse(name, fmt::format("{} bytes follow the header; it names {}; the file was cut or joined, "
                             "so copy or encode it again",
                             body.size(), length));
  if (checksum_of(body) != checksum)
    refuse(name, "the checksum is wrong: bytes of the file have changed; copy or encode it again");
  return body;
}

SavedWeights read_body(std::string_view body, std::string_view name) {
  Reader from(body, name);
  SavedWeights weights;
  const auto text = from.number<std::uint64_t>("the length of the plan");
  weights.plan = std::string(from.take(text, "the plan"));
  const auto layouts = from.number<std::uint32_t>("the number of layouts");
  const auto groups = from.number<std::uint32_t>("the number of groups");
  if (layouts < 1 || layouts > 2)
    refuse(name, fmt::format("it has {} layouts; legal: 1 and 2", layouts));
  if (groups < 1 || groups > kMostGroups)
    refuse(name, fmt::format("it has {} groups; legal: 1 to {}", groups, kMostGroups));
  for (std::uint32_t g = 0; g < groups; ++g) weights.patterns.push_back(read_pattern(from, name));
  for (std::uint32_t l = 0; l < layouts; ++l)
    weights.layouts.push_back(read_layout(groups, from, name));
  for (std::uint32_t g = 0; g < groups; ++g)
    weights.values.push_back(
        from.list<std::byte>(value_bytes(weights.layouts.front().grid), "the values"));
  from.expect_end();
  return weights;
}

}  // namespace

SavedBuckets saved(const Buckets& buckets) {
  return {.meta = buckets.meta, .grad_a_meta = buckets.grad_a_meta, .stats = buckets.stats};
}

Buckets restored(const TileGrid& grid, const SavedBuckets& saved, const sparse::Csr<float>& pattern,
                 Executor& executor) {
  Buckets buckets{.grid = grid,
                  .meta = saved.meta,
                  .grad_a_meta = saved.grad_a_meta,
                  .source = {},
                  .travel = {},
                  .stats = saved.stats};
  const std::int64_t area = grid.block.area(), slots = grid.buckets() * grid.blocks;
  // Every value is the number of its slot, so the decoded matrix says where its blocks are.
  std::vector<double> numbers(std::size_t(slots * area));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const sparse::Csr<double> matrix = decode(buckets, std::span<const double>(numbers), executor);
  if (matrix.rows != pattern.rows || matrix.cols != pattern.cols || matrix.block != pattern.block ||
      matrix.row_begin != pattern.row_begin || matrix.col != pattern.col)
    throw Error(ErrorCode::BadInput,
                "the words of the buckets hold another pattern than the file names; encode the "
                "weights again");
  buckets.source.assign(std::size_t(slots), -1);
  for (std::int64_t b = 0; b < matrix.blocks(); ++b)
    buckets.source[std::size_t(std::int64_t(matrix.values[std::size_t(b * area)]) / area)] =
        std::int32_t(b);
  buckets.travel =
      std::visit([&](const auto& words) { return internal::travel_of(grid, words); }, buckets.meta);
  const SpillStats& stats = buckets.stats;
  if (stats.blocks != matrix.blocks() || stats.moved_blocks > stats.blocks ||
      (stats.moved_blocks == 0) != buckets.travel.stays_home())
    throw Error(ErrorCode::BadInput,
                fmt::format("the statistics say that {} of {} blocks moved, but the words have {} "
                            "blocks, {}",
                            stats.moved_blocks, stats.blocks, matrix.blocks(),
                            buckets.travel.stays_home() ? "all at home" : "not all at home"));
  return buckets;
}

std::string write_saved_weights(const SavedWeights& weights) {
  Writer body;
  body.number(std::uint64_t(weights.plan.size()));
  body.list(std::span(weights.plan));
  body.number(std::uint32_t(weights.layouts.size()));
  body.number(std::uint32_t(weights.patterns.size()));
  require(weights.values.size() == weights.patterns.size(), "values");
  for (const sparse::Csr<float>& pattern : weights.patterns) write_pattern(pattern, body);
  for (const SavedLayout& layout : weights.layouts) {
    require(layout.groups.size() == weights.patterns.size(), "layouts");
    write_layout(layout, body);
  }
  for (const std::vector<std::byte>& values : weights.values) {
    require(values.size() == value_bytes(weights.layouts.front().grid), "values");
    body.list(std::span(values));
  }
  Writer file;
  file.list(std::span(kMagic));
  file.number(kVersion);
  file.number(checksum_of(body.bytes()));
  file.number(std::uint64_t(body.bytes().size()));
  return file.bytes() + body.bytes();
}

SavedWeights read_saved_weights(std::string_view bytes, std::string_view name) {
  const std::string_view body = checked_body(bytes, name);
  try {
    return read_body(body, name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::LimitExceeded) throw;
    refuse(name, error.what());
  }
}

}  // namespace tessera::partitioner
