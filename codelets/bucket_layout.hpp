#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"

// The words of a bucket, in their only definition. The encoder, the decoder, the codelets and the
// size formulas all use this header; docs/bucket-format.md explains one example word by word.
//
// A bucket is a list of records followed by one 0 word (the end marker); unused words after it are
// 0. A record holds non-zeros of ONE cell (x partition, y partition), named by its sub-group id.
//
// Element record:                                   Block record:
//   ElementHeader                                     BlockHeader
//   WorkerEntry        x header.workers               GradWWorkerEntry x header.grad_w_workers
//   if GradW: 1 word, the number of GradW workers     per block row:
//             GradWWorkerEntry x that number            OutputEntry {first element row, blocks - 1}
//   per row:                                            1 word per block: first element column
//     OutputEntry {row, columns}
//     1 word per non-zero: column * scale
//
// An element record of a separate GradA bucket is the same with rows and columns swapped, without
// the GradW part, and with 2 words per non-zero: value index * type factor, row * scale.
//   scale = type factor * header.z. The type factor is 4 for float and 2 for half, so a column word
//   is the byte offset of row y in a dense slice [y][z].
//
// Rows and columns count from the start of the cell's partition. Offsets to entries are in words.
namespace tessera::codelets {

// Returns the id of the cell (x, y): 1 .. x_parts * y_parts. 0 marks the end of a bucket.
constexpr std::int64_t sub_group_id(std::int64_t x, std::int64_t y, std::int64_t y_parts) {
  return x * y_parts + y + 1;
}

// Returns the factor of element offsets, which count bytes of the type.
constexpr std::int64_t type_factor(DataType type) { return bytes_of(type); }

// The words at the start of an element record.
struct ElementHeader {
  std::int32_t sub_group;
  std::int32_t x_partition, y_partition;  // swapped in a separate GradA bucket
  std::int32_t non_zeros;                 // values of this record
  std::int32_t next_record;               // words from this record's start to the next one's
  std::int32_t z;                         // batch columns per tile, elements
  std::int32_t last_row;                  // rows - 1
  std::int32_t first_output;              // words from this record's start to its first OutputEntry
  std::int32_t workers;                   // WorkerEntries that follow

  friend bool operator==(const ElementHeader&, const ElementHeader&) = default;
};

// The share of one worker in Fwd, and in GradA with separate meta-information: some rows and some
// z.
struct WorkerEntry {
  std::int32_t first_value;   // of its first row, counted from the record's first value
  std::int32_t z;             // batch columns of this worker
  std::int32_t first_z;       // elements
  std::int32_t last_row;      // rows - 1
  std::int32_t first_output;  // words from this entry's start to its first OutputEntry

  friend bool operator==(const WorkerEntry&, const WorkerEntry&) = default;
};

// The share of one worker in GradW: a run of non-zeros (blocks) that may begin and end inside a
// row.
struct GradWWorkerEntry {
  std::int32_t first_value;   // counted from the record's first value
  std::int32_t first_output;  // words from this entry's start to the OutputEntry of its first row
  std::int32_t skip;          // non-zeros (blocks) of that row that belong to earlier workers
  std::int32_t count;         // non-zeros (blocks) to work on

  friend bool operator==(const GradWWorkerEntry&, const GradWWorkerEntry&) = default;
};

// One output row of a record. Its column words follow.
struct OutputEntry {
  std::int32_t row;  // element row inside the x partition (block record: first row of the block)
  std::int32_t columns;  // element record: non-zeros in the row; block record: blocks - 1

  friend bool operator==(const OutputEntry&, const OutputEntry&) = default;
};

// The words at the start of a block record.
struct BlockHeader {
  std::int32_t sub_group;
  std::int32_t x_partition, y_partition;
  std::int32_t non_zeros;    // values of this record: blocks * area
  std::int32_t next_record;  // words from this record's start to the next one's
  std::int32_t last_row;     // block rows - 1
  std::int32_t grad_w_workers;

  friend bool operator==(const BlockHeader&, const BlockHeader&) = default;
};

// Number of words of a part.
template <class Part>
inline constexpr std::int64_t kWords = sizeof(Part) / sizeof(std::int32_t);

// Reads the part that starts at `words`. Word is std::uint16_t or std::uint32_t.
template <class Part, class Word>
constexpr Part load(const Word* words) {
  std::array<std::int32_t, kWords<Part>> fields;
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = static_cast<std::int32_t>(words[i]);
  return std::bit_cast<Part>(fields);
}

// Passes the words of a part to `sink(word)` in order. The sink checks the width.
template <class Part, class Sink>
constexpr void store(const Part& part, Sink&& sink) {
  for (const std::int32_t word : std::bit_cast<std::array<std::int32_t, kWords<Part>>>(part))
    sink(word);
}

// The shape of a record, by which the planner and the balancing charge its words.
struct RecordShape {
  bool element = true;       // element or block record
  bool grad_w = false;       // with the table of GradW workers
  std::int64_t workers = 6;  // entries counted in each table
};

// Words of a record before its first output row.
constexpr std::int64_t fixed_record_words(RecordShape shape) {
  const std::int64_t grad_w = shape.grad_w ? shape.workers * kWords<GradWWorkerEntry> : 0;
  if (!shape.element) return kWords<BlockHeader> + grad_w;
  return kWords<ElementHeader> + shape.workers * kWords<WorkerEntry> + grad_w + shape.grad_w;
}

// Words of a record of a forward bucket with `rows` rows and `blocks` non-zeros (blocks).
constexpr std::int64_t record_words(RecordShape shape, std::int64_t rows, std::int64_t blocks) {
  return fixed_record_words(shape) + kWords<OutputEntry> * rows + blocks;
}

// Words after the last record: a sub-group of 0.
inline constexpr std::int64_t kEndMarkerWords = 1;

}  // namespace tessera::codelets
