#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/half.hpp"

// The softmax over rows of a block-sparse matrix and its gradient, as a tile computes them for the
// rows that it was given. All functions compute in float, never allocate, throw or print, and may
// run on many tiles at the same time. T is float, Half or BFloat16. Each has a reference kernel,
// which defines the bits, and one with vectors.
namespace tessera::codelets {

// Rows of stored values. A row consists of runs of `run` values, those of one block each; a row of
// single elements is one run (run 0). Rows come in bands of `height`: band i has the values
// row_begin[i] .. row_begin[i + 1] - 1. With height 1, as on a tile, a band is a row whose runs
// follow each other. Otherwise it is a block row as a Csr stores it, whose blocks follow each
// other: row r of the band has its runs at r * run in each block of height * run values.
struct SoftmaxRows {
  std::span<const std::int32_t> row_begin;  // [bands + 1], ascending
  std::int64_t run = 0;
  // A bit for each value, 32 in a word from the lowest bit on: 1 if the mask keeps it. Empty: it
  // keeps all.
  std::span<const std::uint32_t> kept;
  float scale = 1;          // of the scores, before the softmax
  std::int64_t height = 1;  // needs a run above 0 unless it is 1

  std::int64_t rows() const { return (std::ssize(row_begin) - 1) * height; }

  // The runs of a row: `count` adjacent values from `first`, first + step, ... below `end` on.
  struct Runs {
    std::int64_t first = 0, end = 0, step = 0, count = 0;
  };
  Runs runs_of(std::int64_t row) const {
    const std::int64_t band = row / height, begin = row_begin[std::size_t(band)],
                       end = row_begin[std::size_t(band) + 1];
    const std::int64_t count = run > 0 ? run : end - begin;
    return {begin + row % height * count, end, height * count, count};
  }
};

// Writes exp(scale * score - largest of the row) / sum of the row, and 0 for what is not kept. Sums
// are floats, in eight lanes that start from 0 with each run. A row whose kept scores are all minus
// infinity becomes 0. In a row whose largest product scale * score is beyond the range of float,
// the differences of the scores are scaled. The arrays may be the same.
template <class T>
void softmax(const SoftmaxRows& rows, const T* scores, T* out) noexcept;
template <class T>
void softmax_reference(const SoftmaxRows& rows, const T* scores, T* out) noexcept;

// Writes the gradient of the scores from the softmax p and its gradient g:
// scale * p * (g - sum over the row of p * g), and 0 for what is not kept. `out` may be either.
template <class T>
void softmax_gradient(const SoftmaxRows& rows, const T* softmax, const T* gradient,
                      T* out) noexcept;
template <class T>
void softmax_gradient_reference(const SoftmaxRows& rows, const T* softmax, const T* gradient,
                                T* out) noexcept;

}  // namespace tessera::codelets
