#include "tessera/tools/ranks/rank_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/distributed/files.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/io/row_file.hpp"
#include "tessera/sparse/block_stats.hpp"
#include "tessera/sparse/fit_range.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/options/inputs.hpp"

namespace tessera::tools {
namespace {

using distributed::Communicator;

double largest_of_ranks(Communicator& ranks, double own) {
  return std::ranges::max(distributed::gather(ranks, "largest values", own));
}

// Returns the largest sum of a row or column.
double largest_sum(Communicator& ranks, const sparse::MagnitudeSums& own) {
  double largest = own.largest_row;
  for (const double column : distributed::sums_of_ranks(ranks, "sums of columns", own.columns))
    largest = std::max(largest, column);
  return largest_of_ranks(ranks, largest);
}

// Scales the rows of all ranks by one power of two (fit_range).
sparse::Csr<float> fit_rows(Communicator& ranks, sparse::Csr<double> rows, const Arguments& a,
                            Weights& layer) {
  const double largest = largest_of_ranks(ranks, sparse::largest_magnitude(rows, a.matrix));
  const double sum = largest_sum(ranks, sparse::magnitude_sums(rows, sparse::shift_of(largest)));
  sparse::RangeFit fit = sparse::scaled(std::move(rows), a.data_type,
                                        sparse::range_exponent(a.data_type, largest, sum));
  sparse::RangeFit all{.exponent = fit.exponent};
  const std::vector<std::int64_t> own{fit.nonzeros, fit.lost};
  for (const auto& list : gather_lists(ranks, "numbers of values", own)) {
    all.nonzeros += list[0];
    all.lost += list[1];
  }
  layer.source += sparse::note_of(all);
  layer.scale_exponent = fit.exponent;
  return std::move(fit.weights);
}

RankWeights read_rows(const Arguments& a, Communicator& ranks) {
  auto file = distributed::read_own_rows<double>(ranks, a.matrix, a.block.rows);
  if (file.outputs.rows() < 1 || file.cols < 1)
    throw Error(ErrorCode::BadInput, a.matrix + ": a layer needs at least one row and one column");
  RankWeights weights{.layer = {{}, file.outputs.rows(), file.cols, a.matrix},
                      .cut = std::move(file.outputs),
                      .block = a.block};
  sparse::Csr<float> elements;
  if (file.has_values) {
    elements = fit_rows(ranks, std::move(file.rows), a, weights.layer);
  } else {
    elements = sparse::cast<float>(file.rows);
    sparse::fill_signs(elements, a.seed, file.first_entry);
    weights.layer.source += kPatternNote;
  }
  weights.rows = a.block.is_element() ? std::move(elements) : in_whole_blocks(elements, a.block);
  return weights;
}

RankWeights keep_rows(const Arguments& a, Communicator& ranks) {
  const Weights all = make_weights(a);
  const sparse::Csr<float>& matrix = *all.matrix;
  RankWeights weights{
      .layer = {{}, all.rows, all.cols, all.source, all.scale_exponent},
      .cut = distributed::cut_evenly(matrix.row_begin, all.rows, matrix.block.rows, ranks.size()),
      .block = matrix.block};
  weights.rows = sparse::rows_of(matrix, weights.cut.of(ranks.rank()));
  return weights;
}

RankWeights keep_all(const Arguments& a) {
  RankWeights weights{.layer = make_weights(a), .is_whole = true};
  weights.block = weights.layer.matrix->block;
  if (!a.matrix.empty())
    weights.note = "every rank reads the whole file: --replicas needs all of it";
  return weights;
}

RankWeights rows_of_rank(const Arguments& a, Communicator& ranks) {
  if (a.groups > 1 || a.replicas != 1) return keep_all(a);
  if (a.matrix.empty() || !a.values.empty()) return keep_rows(a, ranks);
  try {
    return read_rows(a, ranks);
  } catch (const io::NotByRows& error) {
    RankWeights weights = keep_rows(a, ranks);
    weights.note = fmt::format("every rank reads the whole file: {}", error.what());
    return weights;
  }
}

}  // namespace

RankWeights make_rank_weights(const Arguments& a, Communicator& ranks) {
  RankWeights weights = rows_of_rank(a, ranks);
  if (weights.is_whole) {
    for (const auto& matrix : weights.layer.matrices()) weights.blocks += matrix->blocks();
    weights.empty_rows = weights.layer.empty_rows();
    return weights;
  }
  weights.blocks = distributed::sum_of_ranks(ranks, "numbers of blocks", weights.rows.blocks());
  weights.empty_rows =
      distributed::sum_of_ranks(ranks, "numbers of rows", sparse::empty_block_rows(weights.rows));
  return weights;
}

}  // namespace tessera::tools
