#pragma once

#include <cstdint>

#include "tessera/codelets/static_words.hpp"

// The walk over the words of a static pattern; static_words.hpp describes them.
namespace tessera::codelets::internal {

inline constexpr std::int64_t kStaticElementHeader = 6, kStaticBlockHeader = 2, kStaticBlockRow = 2;

// The work of one worker of an element kernel.
struct StaticWorker {
  std::int64_t rows = 0, first_word = 0, first_value = 0, z = 0, first_z = 0, first_row = 0;
};

template <class Word>
StaticWorker static_worker(const Word* words, std::int64_t i) {
  const Word* w = words + i * kStaticElementHeader;
  return {w[0], w[1], w[2], w[3], w[4], w[5]};
}

// Returns what is added to the stored number of columns of a row of elements.
inline std::int64_t uncounted_columns(DataType type) { return type == DataType::Float ? 0 : 1; }

// Blocks of one row: their column words, and the index of their first block.
template <class Word>
struct StaticRow {
  std::int64_t row = 0, blocks = 0, first = 0;
  const Word* columns = nullptr;
};

// Calls visit(StaticRow) for every row of a worker of elements. Returns the blocks of all of them.
template <class Word, class Visit>
std::int64_t for_each_static_row(const StaticForm& form, const Word* words,
                                 const StaticWorker& worker, Visit&& visit) {
  const Word* at = words + form.workers * kStaticElementHeader + worker.first_word;
  std::int64_t value = worker.first_value;
  for (std::int64_t r = 0; r < worker.rows; ++r) {
    const std::int64_t columns = *at + uncounted_columns(form.type);
    visit(StaticRow<Word>{worker.first_row + r, columns, value, at + 1});
    at += 1 + columns;
    value += columns;
  }
  return value - worker.first_value;
}

// The batch columns of the workers of a block kernel. They follow one another.
struct StaticZ {
  std::int64_t begin = 0, size = 0;
};

template <class Word>
StaticZ static_z(const StaticForm& form, const Word* words) {
  StaticZ z{words[0], 0};
  for (std::int64_t i = 0; i < form.workers; ++i) z.size += words[i * kStaticBlockHeader + 1];
  return z;
}

// Calls visit(StaticRow) for every row of blocks. Returns all blocks.
template <class Word, class Visit>
std::int64_t for_each_static_block_row(const StaticForm& form, const Word* words, Visit&& visit) {
  const Word* at = words + form.workers * kStaticBlockHeader;
  const std::int64_t rows = std::int64_t{*at++} + 1, scale = form.z / form.z_grain;
  std::int64_t first = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t blocks = std::int64_t{at[1]} + 1;
    visit(StaticRow<Word>{at[0] / scale, blocks, first, at + kStaticBlockRow});
    at += kStaticBlockRow + blocks;
    first += blocks;
  }
  return first;
}

// Returns the number by which column words are divided to give numbers of columns.
inline std::int64_t column_scale(const StaticForm& form) {
  return form.block.is_element() ? form.z * bytes_of(form.type) : form.z / form.z_grain;
}

// Calls run(word) with a zero of the type of the words.
template <class Run>
decltype(auto) with_word(const StaticForm& form, Run&& run) {
  return form.word_bits == 16 ? run(std::uint16_t{}) : run(std::uint32_t{});
}

}  // namespace tessera::codelets::internal
