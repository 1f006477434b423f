#include "tessera/codelets/visit_cost.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/internal/bucket_walk.hpp"

namespace tessera::codelets {
namespace {

using internal::for_each_record, internal::for_each_row;

// The work of the slowest worker of one record.
struct Loop {
  std::int64_t start = 0;   // once per step
  std::int64_t cycles = 0;  // rows and non-zeros
};

Loop slower(Loop a, Loop b) { return a.start + a.cycles < b.start + b.cycles ? b : a; }

Loop loop_of(const MatMulKernel& kernel, std::int64_t z, std::int64_t rows, std::int64_t nonzeros) {
  const LinearCycles cycles = worker_cycles(kernel, z);
  return {cycles.start, cycles(rows, nonzeros).value - cycles.start};
}

// Element Fwd and GradA with separate meta-information use the table of workers.
template <class Word>
Loop slowest_entry(const MatMulKernel& kernel, const ElementHeader& header, const Word* record) {
  const std::int64_t words_per_nonzero = kernel.method == Method::ElementGradA ? 2 : 1;
  const Word* words = record + kWords<ElementHeader>;
  Loop slowest;
  for (std::int64_t i = 0; i < header.workers; ++i, words += kWords<WorkerEntry>) {
    const auto worker = load<WorkerEntry>(words);
    const std::int64_t rows = worker.last_row + 1;
    std::int64_t nonzeros = 0;
    for_each_row(words + worker.first_output, rows, [&](const OutputEntry& row, const Word*) {
      nonzeros += row.columns;
      return row.columns * words_per_nonzero;
    });
    slowest = slower(slowest, loop_of(kernel, worker.z, rows, nonzeros));
  }
  return slowest;
}

// Element GradATransposed: workers advance together row by row, so each row costs its largest
// share.
template <class Word>
Loop dealt_rows(const MatMulKernel& kernel, std::int64_t z, const ElementHeader& header,
                const Word* record) {
  const std::int64_t rows = header.last_row + 1;
  std::int64_t hands = 0;
  for_each_row(record + header.first_output, rows, [&](const OutputEntry& row, const Word*) {
    hands += ceil_div(row.columns, kernel.workers);
    return row.columns;
  });
  return loop_of(kernel, z, rows, hands);
}

struct GradWTable {
  std::int64_t first_word = 0, workers = 0;
};

template <class Word>
GradWTable grad_w_table(const ElementHeader& header, const Word* record) {
  const std::int64_t count_word = kWords<ElementHeader> + header.workers * kWords<WorkerEntry>;
  if (count_word >= header.first_output) return {};
  return {count_word + 1, std::int64_t{record[count_word]}};
}

template <class Word>
GradWTable grad_w_table(const BlockHeader& header, const Word*) {
  return {kWords<BlockHeader>, header.grad_w_workers};
}

std::int64_t columns_of(const ElementHeader&, const OutputEntry& row) { return row.columns; }
std::int64_t columns_of(const BlockHeader&, const OutputEntry& row) { return row.columns + 1; }

// GradW uses runs of non-zeros (blocks), which may begin and end inside a row.
template <class Header, class Word>
Loop slowest_run(const MatMulKernel& kernel, std::int64_t z, const Header& header,
                 const Word* record) {
  const GradWTable table = grad_w_table(header, record);
  if (table.workers == 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the record of sub-group {} has no table of GradW workers, so GradW "
                            "cannot run on it; encode the buckets with GradW",
                            header.sub_group));
  const Word* words = record + table.first_word;
  Loop slowest;
  for (std::int64_t i = 0; i < table.workers; ++i, words += kWords<GradWWorkerEntry>) {
    const auto worker = load<GradWWorkerEntry>(words);
    const Word* row = words + worker.first_output;
    std::int64_t rows = 0;
    for (std::int64_t seen = -worker.skip; seen < worker.count; ++rows) {
      const std::int64_t columns = columns_of(header, load<OutputEntry>(row));
      seen += columns;
      row += kWords<OutputEntry> + columns;
    }
    slowest = slower(slowest, loop_of(kernel, z, rows, worker.count));
  }
  return slowest;
}

template <class Word>
Loop slowest_worker(const MatMulKernel& kernel, std::int64_t z, const ElementHeader& header,
                    const Word* record) {
  if (kernel.method == Method::ElementTranspose) return dealt_rows(kernel, z, header, record);
  if (kernel.method == Method::ElementGradW) return slowest_run(kernel, z, header, record);
  return slowest_entry(kernel, header, record);
}

std::int64_t nonzeros_of(const MatMulKernel&, const ElementHeader& header) {
  return header.non_zeros;
}
std::int64_t nonzeros_of(const MatMulKernel& kernel, const BlockHeader& header) {
  return header.non_zeros / kernel.block.area();
}

template <class Word>
Loop slowest_worker(const MatMulKernel& kernel, std::int64_t z, const BlockHeader& header,
                    const Word* record) {
  if (kernel.method == Method::BlockGradW) return slowest_run(kernel, z, header, record);
  // The largest of the shares that split_between_workers(1, z, workers) makes.
  const std::int64_t share =
      kernel.method == Method::BlockGradWAmp ? z : ceil_div(z, kernel.workers);
  return loop_of(kernel, share, header.last_row + 1, nonzeros_of(kernel, header));
}

template <class Header, class Word>
Cycles step_cycles(const VisitCostArgs& args) {
  const MatMulKernel kernel = cost_kernel(args);
  BucketScan scan;
  Loop loop;
  std::int64_t rows = 0, nonzeros = 0;
  for (const void* const bucket : args.buckets) {
    std::int64_t place = 0, last_match = 0;
    for_each_record<Header>(static_cast<const Word*>(bucket),
                            [&](const Header& header, const Word* record, std::int64_t) {
                              ++place;
                              if (header.sub_group != args.sub_group) return;
                              last_match = place;
                              ++scan.matches;
                              rows += header.last_row + 1;
                              nonzeros += nonzeros_of(kernel, header);
                              const Loop slowest = slowest_worker(kernel, args.z, header, record);
                              loop = {std::max(loop.start, slowest.start),
                                      loop.cycles + slowest.cycles};
                            });
    scan.match_positions += last_match;
    scan.records_passed += place - last_match;
  }
  const Cycles scanned = scan_cycles(kernel.method)(scan);
  if (scan.matches == 0) return scanned;
  return scanned + supervisor_load_cycles(kernel, args.z)(rows, nonzeros) +
         Cycles(args.workers * (loop.start + loop.cycles));
}

Method method_of(const VisitCostArgs& args) {
  const bool element = args.key.format == Format::Element;
  switch (args.key.operation) {
    case Operation::Fwd:
      return element ? Method::ElementFwd : Method::BlockFwd;
    case Operation::GradATransposed:
      return element ? Method::ElementTranspose : Method::BlockTranspose;
    case Operation::GradA:
      return Method::ElementGradA;
    case Operation::GradW:
      if (element) return Method::ElementGradW;
      return args.grad_w_amp ? Method::BlockGradWAmp : Method::BlockGradW;
  }
  assertion_failed("every operation has a method", __FILE__, __LINE__);
}

}  // namespace

MatMulKernel cost_kernel(const VisitCostArgs& args) {
  const Method method = method_of(args);
  return {.method = method,
          .data_type = args.key.in,
          .partials_type = args.key.sum,
          .block = method == Method::BlockTranspose ? args.block.transposed() : args.block,
          .workers = args.workers,
          .conv_units = args.conv_units};
}

Cycles visit_cycles(const VisitCostArgs& args) {
  const bool narrow = args.key.word_bits == 16;
  if (args.key.format == Format::Element)
    return narrow ? step_cycles<ElementHeader, std::uint16_t>(args)
                  : step_cycles<ElementHeader, std::uint32_t>(args);
  return narrow ? step_cycles<BlockHeader, std::uint16_t>(args)
                : step_cycles<BlockHeader, std::uint32_t>(args);
}

}  // namespace tessera::codelets
