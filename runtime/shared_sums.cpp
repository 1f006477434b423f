#include "tessera/runtime/internal/shared_sums.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {
namespace {

// The slice of the operand and the partial sums of a cell together stay below this. They are read
// again and again, so they should fit in L2, beside the words, values and sums that pass through it
// (L2 is 1 or 2 MiB on the computers of bench/results).
constexpr std::int64_t kCacheBytes = 768 << 10;

// Several jobs a thread, so that no thread waits long for the last job.
constexpr std::int64_t kJobsPerThread = 4;

}  // namespace

SharedSums::SharedSums(const PassSpec& spec, Executor& executor)
    : spec_(spec),
      role_(role_of(spec)),
      map_(spec.parts(), TileOrder::Yzx),
      shape_(values_shape(spec)),
      kernel_(codelets::find_kernel(kernel_key(spec)).run),
      add_(move_up_for(spec.partials_type)),
      cast_(add_up_for(spec.partials_type, spec.data_type())),
      executor_(executor) {
  const std::size_t buckets = std::size_t(spec.groups * spec.grid.buckets());
  homes_.resize(buckets);
  words_.resize(buckets);
  cell_cycles_.resize(buckets / std::size_t(spec.grid.splits.z));
  arrived_.resize(std::size_t(map_.tiles()));
  choose_jobs();
}

std::int64_t SharedSums::most_rows(bool of_result) const {
  const Dims& splits = spec_.grid.splits;
  std::int64_t most = 0;
  for (std::int64_t part = 0; part < std::max(splits.x, splits.y); ++part) {
    const Cell cell{.x = std::min(part, splits.x - 1), .y = std::min(part, splits.y - 1)};
    const Range rows =
        of_result ? role_.out_rows(spec_.grid, cell) : role_.in_rows(spec_.grid, cell);
    most = std::max(most, rows.size());
  }
  return most;
}

// As many columns of the batch as fit in the cache, and as many parts of the result as leave enough
// jobs for the threads. The kernel for a batch of one adds in another order than for wider ones.
void SharedSums::choose_jobs() {
  const Dims& splits = spec_.grid.splits;
  most_out_rows_ = most_rows(true);
  const std::int64_t column = most_rows(false) * bytes_of(spec_.data_type()) +
                              most_out_rows_ * bytes_of(spec_.partials_type);
  const std::int64_t fitting = z() == 1 ? 1 : kCacheBytes / std::max<std::int64_t>(column * z(), 1);
  const std::int64_t zs = std::clamp<std::int64_t>(fitting, 1, splits.z);
  const std::int64_t outs = role_.out_parts(splits), threads = executor_.threads();
  const std::int64_t columns = spec_.groups * ceil_div(splits.z, zs);
  const std::int64_t wanted = threads == 1 ? 1 : ceil_div(kJobsPerThread * threads, columns);
  std::int64_t step = ceil_div(outs, std::min(outs, wanted));
  const std::int64_t bytes = most_out_rows_ * zs * z() * bytes_of(spec_.partials_type);
  if (casts())
    step = std::clamp<std::int64_t>(kCacheBytes / std::max<std::int64_t>(bytes, 1), 1, step);
  for (std::int64_t g = 0; g < spec_.groups; ++g)
    for (std::int64_t k = 0; k < splits.z; k += zs)
      for (std::int64_t part = 0; part < outs; part += step)
        jobs_.push_back({g, {part, std::min(part + step, outs)}, {k, std::min(k + zs, splits.z)}});
  scratch_.resize(std::size_t(std::min(threads, std::ssize(jobs_))));
  for (Scratch& scratch : scratch_) {
    if (role_.in_parts(splits) > 1) scratch.partials.resize(std::size_t(bytes));
    if (casts()) scratch.sums.resize(std::size_t(bytes * step));
  }
}

void SharedSums::begin(const BucketImage& image, device::ByteRows in, device::ByteRows out) {
  in_ = in;
  out_ = out;
  for (auto& visits : arrived_) visits.clear();
  for (std::size_t g = 0; g < image.groups.size(); ++g) {
    const partitioner::Buckets& buckets = image.groups[g];
    for (std::int64_t b = 0; b < buckets.grid.buckets(); ++b) {
      const std::size_t i = g * std::size_t(buckets.grid.buckets()) + std::size_t(b);
      words_[i] = shape_.grad_a_words ? buckets.grad_a_meta_words(b) : buckets.meta_words(b);
      homes_[i] = {words_[i], image.values + std::int64_t(i) * shape_.payload_bytes};
    }
  }
}

void SharedSums::count_cycles(const device::Machine& machine) {
  const auto parts = std::size_t(spec_.grid.splits.z);
  executor_.for_each(std::ssize(cell_cycles_), [&](std::int64_t i) {
    const Dims& splits = spec_.grid.splits;
    const Cell cell{
        .x = i / splits.y % splits.x, .y = i % splits.y, .g = i / (splits.x * splits.y)};
    cell_cycles_[std::size_t(i)] =
        visit_cycles(spec_, machine, std::span(words_).subspan(first_bucket(cell), parts),
                     codelets::sub_group_id(cell.x, cell.y, spec_.grid.splits.y));
  });
}

void SharedSums::run() {
  std::atomic<std::size_t> next = 0;
  executor_.for_each(std::ssize(scratch_), [&](std::int64_t thread) {
    for (std::size_t i = next++; i < jobs_.size(); i = next++)
      run_job(jobs_[i], scratch_[std::size_t(thread)]);
  });
}

// The slice of the operand that belongs to a part of the axis that the pass reads stays in the
// cache for all parts of the result.
void SharedSums::run_job(const Job& job, Scratch& scratch) const {
  const std::int64_t columns = job.z_parts.size() * z();
  for (std::int64_t in_part = 0; in_part < role_.in_parts(spec_.grid.splits); ++in_part)
    for (std::int64_t part = job.out_parts.begin; part < job.out_parts.end; ++part) {
      const Cell cell = role_.with_out_part(
          role_.with_in_part({.z = job.z_parts.begin, .g = job.group}, in_part), part);
      const codelets::Result sums =
          casts() ? scratch_of(scratch.sums, (part - job.out_parts.begin) * most_out_rows_, cell,
                               columns)
                  : result_of(cell, columns);
      if (in_part == 0) {
        clear(sums);
        compute(job, cell, sums);
      } else {
        const codelets::Result partials = scratch_of(scratch.partials, 0, cell, columns);
        compute(job, cell, partials);
        add(partials, sums);
      }
      if (casts() && in_part + 1 == role_.in_parts(spec_.grid.splits)) cast(sums, cell);
    }
}

// Adds the products of the tiles of a cell that belong to a job.
void SharedSums::compute(const Job& job, Cell cell, const codelets::Result& to) const {
  const std::int64_t element = bytes_of(spec_.data_type());
  const Range rows = role_.in_rows(spec_.grid, cell);
  const std::int64_t begin = role_.first_in_row(spec_.grid.size, cell) + rows.begin;
  codelets::KernelArgs args;
  args.sub_group = codelets::sub_group_id(cell.x, cell.y, spec_.grid.splits.y);
  args.block = spec_.grid.block;
  args.in = {in_.data + begin * in_.stride + cell.z * z() * element, rows.size(), to.z,
             in_.stride / element};
  args.out = to;
  const auto visit = [&](const Visit& bucket) {
    args.meta = bucket.words;
    args.values = bucket.values;
    kernel_(args);
  };
  const std::size_t first = first_bucket(cell);
  for (std::size_t k = 0; k < std::size_t(spec_.grid.splits.z); ++k) visit(homes_[first + k]);
  args.in.z = args.out.z = z();
  for (std::int64_t k = job.z_parts.begin; k < job.z_parts.end; ++k) {
    cell.z = k;
    for (const Visit& bucket : arrived_[std::size_t(map_.tile(cell).value)]) visit(bucket);
    args.in.data = static_cast<const std::byte*>(args.in.data) + z() * element;
    args.out.data = static_cast<std::byte*>(args.out.data) + z() * bytes_of(spec_.partials_type);
  }
}

void SharedSums::clear(const codelets::Result& to) const {
  const std::int64_t element = bytes_of(spec_.partials_type);
  for (std::int64_t row = 0; row < to.rows; ++row)
    std::memset(static_cast<std::byte*>(to.data) + row * to.row_stride * element, 0,
                std::size_t(to.z * element));
}

// Adds partial sums to others, and leaves zeros.
void SharedSums::add(const codelets::Result& partials, const codelets::Result& to) const {
  const std::int64_t element = bytes_of(spec_.partials_type);
  for (std::int64_t row = 0; row < to.rows; ++row)
    add_(static_cast<std::byte*>(partials.data) + row * partials.row_stride * element, to.z,
         static_cast<std::byte*>(to.data) + row * to.row_stride * element);
}

void SharedSums::cast(const codelets::Result& sums, Cell cell) const {
  const codelets::Result to = result_of(cell, sums.z);
  for (std::int64_t row = 0; row < sums.rows; ++row) {
    const std::byte* from = static_cast<const std::byte*>(sums.data) +
                            row * sums.row_stride * bytes_of(spec_.partials_type);
    cast_({&from, 1}, sums.z,
          static_cast<std::byte*>(to.data) + row * to.row_stride * bytes_of(spec_.data_type()));
  }
}

// Returns the part of the caller's result that belongs to `columns` columns of a cell.
codelets::Result SharedSums::result_of(Cell cell, std::int64_t columns) const {
  const std::int64_t element = bytes_of(spec_.data_type());
  const Range rows = role_.out_rows(spec_.grid, cell);
  const std::int64_t begin = role_.first_out_row(spec_.grid.size, cell) + rows.begin;
  return {out_.data + begin * out_.stride + cell.z * z() * element, rows.size(), columns,
          out_.stride / element};
}

codelets::Result SharedSums::scratch_of(AlignedVector<std::byte>& memory, std::int64_t first_row,
                                        Cell cell, std::int64_t columns) const {
  return {memory.data() + first_row * columns * bytes_of(spec_.partials_type),
          role_.out_rows(spec_.grid, cell).size(), columns, columns};
}

}  // namespace tessera::runtime::internal
