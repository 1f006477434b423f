#include "tessera/distributed/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/input_file.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/io/row_file.hpp"

namespace tessera::distributed {
namespace {

constexpr std::string_view kWhat = "places of the rows of a file";

// Returns the size of a file with a digest of its first and last bytes, by which ranks see that
// they were given copies of one file. To read all of it would take as long as what it saves.
Given given_file(const std::string& path) {
  constexpr std::int64_t kEnds = 1 << 12;
  const InputFile file(path);
  const std::int64_t size = file.bytes(), part = std::min(size, kEnds);
  std::vector<char> ends(std::size_t(2 * part));
  file.read(0, part, ends.data());
  file.read(size - part, part, ends.data() + part);
  return {"file", Digest().add(size).add(std::span<const char>(ends)).value(),
          fmt::format("{} bytes in {}", size, path)};
}

// Returns the index that the first rank has made.
io::RowIndex index_of(Communicator& ranks, const std::string& path) {
  require_same(ranks, "rows of a file", {given_file(path)});
  io::RowIndex index;
  std::string refusal;
  if (ranks.rank() == 0) try {
      index = io::index_rows(path);
    } catch (const io::NotByRows& error) {
      refusal = error.what();
    }
  const auto why = list_of_first(ranks, kWhat, std::vector<char>(refusal.begin(), refusal.end()));
  if (!why.empty()) throw io::NotByRows(std::string(why.begin(), why.end()));
  const auto figures = list_of_first(
      ranks, kWhat,
      std::vector<std::int64_t>{index.rows, index.cols, index.has_values, index.has_whole_values});
  index.rows = figures[0];
  index.cols = figures[1];
  index.has_values = figures[2] != 0;
  index.has_whole_values = figures[3] != 0;
  index.row_begin = list_of_first(ranks, kWhat, index.row_begin);
  index.byte_begin = list_of_first(ranks, kWhat, index.byte_begin);
  return index;
}

}  // namespace

template <class T>
FileRows<T> read_own_rows(Communicator& ranks, const std::string& path, std::int64_t block_rows) {
  const io::RowIndex index = index_of(ranks, path);
  std::vector<std::int64_t> begin{0};  // of each run of so many rows
  for (std::int64_t row = 0; row < index.rows; row += block_rows)
    begin.push_back(index.row_begin[std::size_t(std::min(row + block_rows, index.rows))]);
  FileRows<T> result{.outputs = cut_evenly(begin, index.rows, block_rows, ranks.size()),
                     .cols = index.cols,
                     .has_values = index.has_values,
                     .rows = {}};
  const Range own = result.outputs.of(ranks.rank());
  result.first_entry = index.row_begin[std::size_t(own.begin)];
  result.rows = io::read_rows<T>(path, index, own);
  return result;
}

template FileRows<float> read_own_rows(Communicator&, const std::string&, std::int64_t);
template FileRows<double> read_own_rows(Communicator&, const std::string&, std::int64_t);

}  // namespace tessera::distributed
