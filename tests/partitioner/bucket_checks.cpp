#include "tessera/tests/partitioner/bucket_checks.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tessera/codelets/bucket_layout.hpp"

namespace tessera::partitioner::test {
namespace {

using Words = std::vector<std::int64_t>;

Words bucket_words(const std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>>& all,
                   std::int64_t bucket, std::int64_t length) {
  return std::visit(
      [&](const auto& words) {
        return Words(words.begin() + bucket * length, words.begin() + (bucket + 1) * length);
      },
      all);
}

// Position of the end marker, following the records' lengths.
std::int64_t end_of(const Words& words) {
  std::int64_t at = 0;
  while (words.at(std::size_t(at)) != 0) at += words.at(std::size_t(at) + 4);
  return at;
}

Words up_to_marker(Words words) {
  words.resize(std::size_t(end_of(words)) + 1);
  return words;
}

// Reads one record like a codelet; throws std::string when something is wrong.
class RecordWalk {
 public:
  struct Row {
    std::int64_t at, row, first, count;
  };

  RecordWalk(const TileGrid& grid, const Words& words, std::int64_t start)
      : grid_(grid), words_(words), start_(start), element_(grid.block.is_element()) {
    const std::int64_t id = word(0);
    x_ = (id - 1) / grid.splits.y, y_ = (id - 1) % grid.splits.y;
    require(word(1) == x_ && word(2) == y_, "partition of the id");
    std::int64_t at = element_ ? word(7) : 7 + 4 * word(6);
    const std::int64_t rows = word(element_ ? 6 : 5) + 1;
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t count = word(at + 1) + (element_ ? 0 : 1);
      rows_.push_back({at, word(at), blocks_, count});
      blocks_ += count;
      at += 2 + count;
    }
    require(at == word(4), "length of the record");
    require(word(3) == blocks_ * grid.block.area(), "values of the record");
    for (std::size_t r = 1; r < rows_.size(); ++r)
      require(rows_[r - 1].count > rows_[r].count ||
                  (rows_[r - 1].count == rows_[r].count && rows_[r - 1].row < rows_[r].row),
              "order of the rows");
  }

  void check_tables() const {
    if (element_) check_workers();
    if (grid_.grad_w) check_grad_w();
  }

  // Calls visit(element row, element column) of every block in value order.
  template <class Visit>
  void for_each_block(Visit&& visit) const {
    const std::int64_t scale =
        element_ ? bytes_of(grid_.data_type) * grid_.z_per_tile() : std::int64_t{1};
    for (const Row& row : rows_)
      for (std::int64_t i = 0; i < row.count; ++i) {
        require(word(row.at + 2 + i) % scale == 0, "scale of a column");
        visit(grid_.x_range(x_).begin + row.row,
              grid_.y_range(y_).begin + word(row.at + 2 + i) / scale);
      }
  }

  std::int64_t blocks() const { return blocks_; }
  std::int64_t length() const { return word(4); }
  std::int64_t x() const { return x_; }
  std::int64_t y() const { return y_; }

 private:
  std::int64_t word(std::int64_t i) const { return words_.at(std::size_t(start_ + i)); }
  static void require(bool good, const char* what) {
    if (!good) throw std::string(what);
  }

  std::size_t row_at(std::int64_t at) const {
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (rows_[r].at == at) return r;
    throw std::string("a table points between rows");
  }

  void check_workers() const {
    require(word(5) == grid_.z_per_tile(), "batch columns");
    require(word(8) >= 1 && word(8) <= grid_.workers, "number of workers");
    std::vector<int> done(rows_.size() * std::size_t(grid_.z_per_tile()));
    for (std::int64_t w = 0; w < word(8); ++w) {
      const std::int64_t entry = 9 + 5 * w;
      const std::size_t row = row_at(entry + word(entry + 4));
      require(word(entry) == rows_[row].first, "a worker's first value");
      for (std::size_t r = row; r <= row + std::size_t(word(entry + 3)); ++r)
        for (std::int64_t z = word(entry + 2); z < word(entry + 2) + word(entry + 1); ++z)
          ++done.at(r * std::size_t(grid_.z_per_tile()) + std::size_t(z));
    }
    require(std::all_of(done.begin(), done.end(), [](int n) { return n == 1; }),
            "rows and batch columns of the workers");
  }

  void check_grad_w() const {
    const std::int64_t table = element_ ? 9 + 5 * word(8) + 1 : 7;
    const std::int64_t workers = element_ ? word(table - 1) : word(6);
    require(workers >= 1 && workers <= grid_.workers, "number of GradW workers");
    std::vector<int> done(static_cast<std::size_t>(blocks_));
    for (std::int64_t w = 0; w < workers; ++w) {
      const std::int64_t entry = table + 4 * w;
      const Row& row = rows_[row_at(entry + word(entry + 1))];
      const std::int64_t first = row.first + word(entry + 2);
      require(word(entry) == first * grid_.block.area(), "a GradW worker's first value");
      require(word(entry + 2) < row.count, "a GradW worker's skip");
      for (std::int64_t i = 0; i < word(entry + 3); ++i) ++done.at(std::size_t(first + i));
    }
    require(std::all_of(done.begin(), done.end(), [](int n) { return n == 1; }),
            "blocks of the GradW workers");
  }

  const TileGrid& grid_;
  const Words& words_;
  std::int64_t start_;
  bool element_;
  std::int64_t x_ = 0, y_ = 0, blocks_ = 0;
  std::vector<Row> rows_;
};

class BucketsWalk {
 public:
  BucketsWalk(const Buckets& buckets, const sparse::Csr<float>& matrix)
      : buckets_(buckets), grid_(buckets.grid), seen_(std::size_t(matrix.blocks())) {
    for (std::int64_t r = 0; r < matrix.block_rows(); ++r)
      for (auto i = matrix.row_begin[std::size_t(r)]; i < matrix.row_begin[std::size_t(r) + 1]; ++i)
        place_.emplace_back(r * grid_.block.rows, matrix.col[std::size_t(i)] * grid_.block.cols);
  }

  std::string find_fault() {
    try {
      for (std::int64_t b = 0; b < grid_.buckets(); ++b) walk(b);
      require(std::all_of(seen_.begin(), seen_.end(), [](int n) { return n == 1; }), "lost blocks");
      require(buckets_.travel == travel_, "travel bounds");
      require(buckets_.travel.stays_home() == (moved_ == 0), "travel without moved blocks");
      require(buckets_.stats.moved_blocks == moved_, "count of moved blocks");
      require(buckets_.stats.blocks == std::int64_t(place_.size()), "count of blocks");
      return "";
    } catch (const std::string& what) {
      return "wrong: " + what;
    } catch (const std::out_of_range&) {
      return "a word points outside";
    }
  }

 private:
  static void require(bool good, const char* what) {
    if (!good) throw std::string(what);
  }

  void walk(std::int64_t bucket) {
    const Words words = bucket_words(buckets_.meta, bucket, grid_.meta_words);
    const Words grad_a = bucket_words(buckets_.grad_a_meta, bucket, grid_.grad_a_words);
    std::int64_t slot = 0, at = 0, grad_a_at = 0;
    std::vector<std::int64_t> cells;
    while (words.at(std::size_t(at)) != 0) {
      const RecordWalk record(grid_, words, at);
      cells.push_back(words[std::size_t(at)]);
      record.check_tables();
      record.for_each_block([&](std::int64_t x, std::int64_t y) { take(bucket, slot++, x, y); });
      if (grid_.separate_grad_a) grad_a_at = check_grad_a(grad_a, grad_a_at, record);
      travelled(bucket, record);
      at += record.length();
    }
    std::sort(cells.begin(), cells.end());
    require(std::adjacent_find(cells.begin(), cells.end()) == cells.end(), "two records of a cell");
    require(slot <= grid_.blocks, "capacity in blocks");
    for (auto i = std::size_t(at); i < words.size(); ++i) require(words[i] == 0, "unused words");
    for (auto i = std::size_t(grad_a_at); i < grad_a.size(); ++i)
      require(grad_a[i] == 0, "unused GradA words");
    for (; slot < grid_.blocks; ++slot)
      require(buckets_.source[std::size_t(bucket * grid_.blocks + slot)] == -1, "padding");
  }

  void take(std::int64_t bucket, std::int64_t slot, std::int64_t x, std::int64_t y) {
    require(slot < grid_.blocks, "capacity in blocks");
    const std::int32_t block = buckets_.source[std::size_t(bucket * grid_.blocks + slot)];
    require(block >= 0, "a slot without source");
    ++seen_.at(std::size_t(block));
    require(place_.at(std::size_t(block)) == std::pair(x, y), "place of a block");
  }

  // A GradA record: header and workers as forward; pairs {value index, row} below each column.
  std::int64_t check_grad_a(const Words& words, std::int64_t start,
                            const RecordWalk& forward) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> of_value;
    forward.for_each_block([&](std::int64_t x, std::int64_t y) { of_value.emplace_back(x, y); });
    const auto word = [&](std::int64_t i) { return words.at(std::size_t(start + i)); };
    const std::int64_t factor = bytes_of(grid_.data_type), scale = factor * grid_.z_per_tile();
    require(word(0) == forward.x() * grid_.splits.y + forward.y() + 1, "GradA id");
    require(word(1) == forward.y() && word(2) == forward.x(), "GradA partitions");
    require(word(3) == forward.blocks() && word(5) == grid_.z_per_tile(), "GradA sizes");
    std::int64_t at = word(7), found = 0;
    std::vector<std::int64_t> row_starts;
    for (std::int64_t r = 0; r <= word(6); ++r) {
      row_starts.push_back(at);
      const std::int64_t y = grid_.y_range(forward.y()).begin + word(at), count = word(at + 1);
      for (at += 2; count > std::int64_t((at - row_starts.back() - 2) / 2); at += 2, ++found) {
        require(word(at) % factor == 0 && word(at + 1) % scale == 0, "GradA scale");
        const auto place = of_value.at(std::size_t(word(at) / factor));
        const std::int64_t x = grid_.x_range(forward.x()).begin + word(at + 1) / scale;
        require(place == std::pair(x, y), "a GradA value");
      }
    }
    require(found == forward.blocks() && at == word(4), "GradA record");
    std::vector<int> done(row_starts.size() * std::size_t(grid_.z_per_tile()));
    for (std::int64_t entry = 9; entry < 9 + 5 * word(8); entry += 5) {
      const auto row = std::find(row_starts.begin(), row_starts.end(), entry + word(entry + 4));
      require(row != row_starts.end() && word(entry) == 0, "GradA worker");
      for (std::int64_t r = row - row_starts.begin(), n = 0; n <= word(entry + 3); ++n, ++r)
        for (std::int64_t z = word(entry + 2); z < word(entry + 2) + word(entry + 1); ++z)
          ++done.at(std::size_t(r * grid_.z_per_tile() + z));
    }
    require(std::all_of(done.begin(), done.end(), [](int n) { return n == 1; }), "GradA workers");
    return start + word(4);
  }

  void travelled(std::int64_t bucket, const RecordWalk& record) {
    const std::int64_t cell = bucket / grid_.splits.z;
    std::int64_t dx = 0, dy = 0;
    while ((cell / grid_.splits.y + dx) % grid_.splits.x != record.x()) ++dx;
    while ((cell % grid_.splits.y + dy) % grid_.splits.y != record.y()) ++dy;
    if (dx + dy > 0) moved_ += record.blocks();
    if (dx >= travel_.x_end()) travel_.y_end.resize(std::size_t(dx) + 1);
    auto& y_end = travel_.y_end[std::size_t(dx)];
    y_end = std::max(y_end, std::int32_t(dy) + 1);
  }

  const Buckets& buckets_;
  const TileGrid& grid_;
  std::vector<int> seen_;
  std::vector<std::pair<std::int64_t, std::int64_t>> place_;
  Travel travel_;
  std::int64_t moved_ = 0;
};

// Words that are needed before the rows, all workers counted.
std::int64_t header_words(const TileGrid& grid) {
  if (!grid.block.is_element()) return 7 + (grid.grad_w ? 4 * grid.workers : 0);
  return 9 + 5 * grid.workers + (grid.grad_w ? 4 * grid.workers + 1 : 0);
}

}  // namespace

std::vector<std::int64_t> forward_words(const Buckets& buckets, std::int64_t bucket) {
  return up_to_marker(bucket_words(buckets.meta, bucket, buckets.grid.meta_words));
}

std::vector<std::int64_t> grad_a_words(const Buckets& buckets, std::int64_t bucket) {
  return up_to_marker(bucket_words(buckets.grad_a_meta, bucket, buckets.grid.grad_a_words));
}

std::vector<std::int64_t> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::int64_t> result;
  for (std::string part; in >> part;)
    if (part != "|") result.push_back(std::stoll(part));
  return result;
}

std::string find_fault(const Buckets& buckets, const sparse::Csr<float>& matrix) {
  return BucketsWalk(buckets, matrix).find_fault();
}

TileGrid with_room(TileGrid grid, const sparse::Csr<float>& matrix) {
  const std::int64_t blocks = matrix.blocks();
  grid.blocks = std::max<std::int64_t>(1, blocks);
  grid.meta_words = 3 * header_words(grid) + 3 * blocks + 1;
  grid.grad_a_words = grid.separate_grad_a ? 3 * (9 + 5 * grid.workers) + 4 * blocks + 1 : 0;
  return grid;
}

TileGrid with_uniform_capacity(TileGrid grid, const sparse::Csr<float>& matrix, double slack) {
  const double x = std::ceil(double(matrix.block_rows()) / double(grid.splits.x));
  const double y = std::ceil(double(matrix.block_cols()) / double(grid.splits.y));
  const double density =
      double(matrix.blocks()) / double(matrix.block_rows() * matrix.block_cols());
  const auto words = [&](double rows, double cols, double per_block) {
    const double used = std::max(1.0, std::ceil(rows * (1 - std::pow(1 - density, cols))));
    const double in_each = std::max(1.0, std::ceil(std::ceil(rows * cols * density) / used));
    return std::int64_t(std::ceil(used * (2 + per_block * in_each) * (1 + slack)));
  };
  grid.blocks = std::max<std::int64_t>(
      1, std::llround(double(ceil_div(matrix.blocks(), grid.buckets())) * (1 + slack)));
  grid.meta_words = round_up(2 * header_words(grid) + words(x, y, 1), 4);
  if (grid.separate_grad_a)
    grid.grad_a_words = round_up(2 * (9 + 5 * grid.workers) + words(y, x, 2), 4);
  return grid;
}

}  // namespace tessera::partitioner::test
