#include "tessera/distributed/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/io/archive.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/part.hpp"

namespace tessera::distributed {
namespace {

constexpr const char* kKind = "a run on ranks";
constexpr std::string_view kWriting = "checkpoint: writing";
constexpr std::string_view kReading = "checkpoint: reading";
constexpr std::int64_t kMostLines = std::numeric_limits<std::int32_t>::max();
constexpr io::Archive::Bounds kCounts{0, std::int64_t{1} << 53}, kLines{0, kMostLines},
    kSides{1, 4096}, kSlots{0, 64}, kLayers{0, 1 << 20};

// Describes a list of `count` numbers, of which only a part is read.
template <class T>
void numbers(io::Archive& archive, const std::string& name, std::int64_t count, Range part,
             std::vector<T>& list) {
  if (archive.is_read())
    archive.append_part(name, part, count, list);
  else
    archive.list(name, list, {count});
}

// Makes the positions of all rows of a layer those of a rank's rows. Returns its blocks.
Range keep_rows(const io::Archive& archive, std::int64_t rows, const Communicator& ranks,
                LayerState& layer) {
  sparse::Csr<float>& m = layer.rows;
  const std::vector<std::int64_t> all = std::exchange(m.row_begin, {});
  if (all.front() != 0 || all.back() > kMostLines || !std::ranges::is_sorted(all))
    archive.refuse("the list row_begin of a layer does not ascend from 0");
  layer.outputs = cut_evenly(all, rows, m.block.rows, ranks.size());
  const Range own = sparse::in_blocks(layer.outputs.of(ranks.rank()), m.block.rows);
  const Range blocks{all[std::size_t(own.begin)], all[std::size_t(own.end)]};
  m.rows = own.size() * m.block.rows;
  for (std::int64_t row = own.begin; row <= own.end; ++row)
    m.row_begin.push_back(all[std::size_t(row)] - blocks.begin);
  return blocks;
}

// Describes a layer, of which the first rank writes all rows and each rank reads its own.
void describe(io::Archive& archive, const Communicator& ranks, LayerState& layer) {
  sparse::Csr<float>& m = layer.rows;
  std::int64_t rows = layer.outputs.rows(), slots = std::ssize(layer.slots);
  archive.whole("rows", rows, kLines);
  archive.whole("cols", m.cols, kLines);
  archive.whole("block_rows", m.block.rows, kSides);
  archive.whole("block_cols", m.block.cols, kSides);
  archive.whole("slots", slots, kSlots);
  archive.list("row_begin", m.row_begin, {ceil_div(rows, m.block.rows) + 1});
  const std::int64_t all = m.row_begin.back(), area = m.block.area();
  const Range blocks = archive.is_read() ? keep_rows(archive, rows, ranks, layer) : Range{0, all};
  const Range values{blocks.begin * area, blocks.end * area};
  numbers(archive, "col", all, blocks, m.col);
  numbers(archive, "values", all * area, values, m.values);
  layer.slots.resize(std::size_t(slots));
  for (std::size_t s = 0; s < layer.slots.size(); ++s)
    numbers(archive, fmt::format("slot{}", s + 1), all * area, values, layer.slots[s]);
}

void describe(io::Archive& archive, const Communicator& ranks, RunState& state) {
  archive.whole("step", state.step, kCounts);
  archive.items("layer", state.layers, kLayers,
                [&](LayerState& layer) { describe(archive, ranks, layer); });
}

// Returns a layer with the rows of all ranks, on the first one.
LayerState whole_layer(Communicator& ranks, const LayerState& own) {
  const sparse::Csr<float>& rows = own.rows;
  LayerState all{own.outputs, {.cols = rows.cols, .block = rows.block}, {}};
  std::vector<std::int64_t> blocks;  // of each row
  for (std::size_t r = 1; r < rows.row_begin.size(); ++r)
    blocks.push_back(rows.row_begin[r] - rows.row_begin[r - 1]);
  for (const std::int64_t count : lists_on_first(ranks, kWriting, blocks))
    all.rows.row_begin.push_back(all.rows.row_begin.back() + count);
  all.rows.col = lists_on_first(ranks, kWriting, rows.col);
  all.rows.values = lists_on_first(ranks, kWriting, rows.values);
  for (const std::vector<float>& slot : own.slots)
    all.slots.push_back(lists_on_first(ranks, kWriting, slot));
  all.rows.rows = (std::ssize(all.rows.row_begin) - 1) * rows.block.rows;
  return all;
}

}  // namespace

void write_checkpoint(Communicator& ranks, const std::string& path, const RunState& own) {
  RunState all{own.step, {}};
  for (const LayerState& layer : own.layers) all.layers.push_back(whole_layer(ranks, layer));
  if (ranks.rank() == 0) {
    for (const LayerState& layer : all.layers) sparse::check(layer.rows);
    io::Archive archive(kKind);
    describe(archive, ranks, all);
    write_file(path, archive.bytes());
  }
  ranks.barrier(kWriting);
}

RunState read_checkpoint(Communicator& ranks, const std::string& path) {
  const auto archive = io::Archive::open(
      path, kKind,
      ranks.rank() == 0 ? io::Archive::Checksum::Compare : io::Archive::Checksum::Skip);
  ranks.barrier(kReading);
  RunState state;
  describe(*archive, ranks, state);
  archive->finish();
  for (std::size_t l = 0; l < state.layers.size(); ++l) try {
      sparse::check(state.layers[l].rows);
    } catch (const Error& error) {
      archive->refuse(fmt::format("layer {}: {}", l + 1, error.what()));
    }
  ranks.barrier(kReading);
  return state;
}

}  // namespace tessera::distributed
