#include "tessera/codelets/check_words.hpp"

#include "tessera/codelets/bucket_layout.hpp"

namespace tessera::codelets {
namespace {

// The lengths of the cell's two sides.
struct CellSides {
  std::int64_t x = 0, y = 0;
};

CellSides sides_of(const KernelKey& key, const KernelArgs& args) {
  if (key.operation == Operation::GradW) return {args.in.rows, args.in_s.rows};
  if (key.operation == Operation::Fwd) return {args.out.rows, args.in.rows};
  return {args.in.rows, args.out.rows};
}

template <class Word>
class Walk {
 public:
  Walk(const KernelKey& key, const KernelArgs& args, const BucketCapacity& capacity)
      : key_(key),
        args_(args),
        capacity_(capacity),
        sides_(sides_of(key, args)),
        words_(static_cast<const Word*>(args.meta)) {}

  template <class Header>
  std::optional<WordsFault> run() {
    std::int64_t value = 0;
    for (std::int64_t at = 0;;) {
      if (!has(at, 1)) return fault(at, "no end marker");
      if (words_[at] == 0) return std::nullopt;
      const auto header = part<Header>(at);
      if (!header || header->next_record < kWords<Header>) return fault(at, "record without end");
      if (header->sub_group == args_.sub_group && !check_record(*header, at, value)) return fault_;
      value += header->non_zeros;
      at += header->next_record;
    }
  }

 private:
  bool has(std::int64_t at, std::int64_t count) const {
    return at >= 0 && at + count <= capacity_.words;
  }
  // Reads a part. Returns nothing if it is outside the bucket or if a field is negative as 32 bits.
  template <class Part>
  std::optional<Part> part(std::int64_t at) const {
    if (!has(at, kWords<Part>)) return std::nullopt;
    for (std::int64_t i = 0; i < kWords<Part>; ++i)
      if (static_cast<std::int32_t>(words_[at + i]) < 0) return std::nullopt;
    return load<Part>(words_ + at);
  }
  std::optional<WordsFault> fault(std::int64_t at, std::string_view what) {
    fault_ = WordsFault{at, what};
    return fault_;
  }
  bool fail(std::int64_t at, std::string_view what) {
    fault(at, what);
    return false;
  }

  static constexpr std::int64_t columns_of(const ElementHeader&, const OutputEntry& row) {
    return row.columns;
  }
  static constexpr std::int64_t columns_of(const BlockHeader&, const OutputEntry& row) {
    return std::int64_t{row.columns} + 1;
  }
  std::int64_t words_per_column() const { return key_.operation == Operation::GradA ? 2 : 1; }

  bool check_record(const ElementHeader& header, std::int64_t at, std::int64_t value) {
    constexpr std::int64_t kMostScale = 0xffffffff;
    if (header.z < 1 || type_factor(key_.in) * header.z > kMostScale)
      return fail(at, "batch columns that cannot be");
    return check_rows(header, at + header.first_output, value) && check_workers(header, at) &&
           check_grad_w(header, at);
  }
  bool check_record(const BlockHeader& header, std::int64_t at, std::int64_t value) {
    const std::int64_t table = header.grad_w_workers * kWords<GradWWorkerEntry>;
    return check_rows(header, at + kWords<BlockHeader> + table, value) && check_grad_w(header, at);
  }

  template <class Header>
  bool check_rows(const Header& header, std::int64_t at, std::int64_t value) {
    for (std::int64_t row = 0; row <= header.last_row; ++row) {
      const auto entry = part<OutputEntry>(at);
      if (!entry) return fail(at, "row outside the bucket");
      at += kWords<OutputEntry>;
      const std::int64_t columns = columns_of(header, *entry);
      if (!has(at, columns * words_per_column())) return fail(at, "columns outside the bucket");
      if (!row_fits(header, entry->row)) return fail(at, "row outside the cell");
      for (std::int64_t i = 0; i < columns; ++i, at += words_per_column())
        if (!column_fits(header, at, value)) return fail(at, "column outside the cell");
      if (words_per_column() == 1) value += columns * args_.block.area();
      if (value > capacity_.values) return fail(at, "more values than there are");
    }
    return true;
  }

  bool row_fits(const ElementHeader&, std::int64_t row) const {
    return row < (key_.operation == Operation::GradA ? sides_.y : sides_.x);
  }
  bool row_fits(const BlockHeader&, std::int64_t row) const {
    return row + args_.block.rows <= sides_.x;
  }
  bool column_fits(const BlockHeader&, std::int64_t at, std::int64_t) const {
    return std::int64_t{words_[at]} + args_.block.cols <= sides_.y;
  }
  // If the words name values, `value` is the index of the record's first value.
  bool column_fits(const ElementHeader& header, std::int64_t at, std::int64_t value) const {
    const std::int64_t factor = type_factor(key_.in), scale = factor * header.z;
    const auto is_row = [&](std::int64_t word, std::int64_t rows) {
      return word % scale == 0 && word / scale < rows;
    };
    if (key_.operation != Operation::GradA) return is_row(words_[at], sides_.y);
    const std::int64_t named = words_[at];
    return named % factor == 0 && value + named / factor < capacity_.values &&
           is_row(words_[at + 1], sides_.x);
  }

  // The tables assign work to workers. Only the cost of a visit reads them.
  bool check_workers(const ElementHeader& header, std::int64_t at) {
    if (key_.operation != Operation::Fwd && key_.operation != Operation::GradA) return true;
    std::int64_t entry = at + kWords<ElementHeader>;
    for (std::int64_t i = 0; i < header.workers; ++i, entry += kWords<WorkerEntry>) {
      const auto worker = part<WorkerEntry>(entry);
      if (!worker || worker->z > header.z) return fail(entry, "worker that cannot be");
      std::int64_t row = entry + worker->first_output;
      for (std::int64_t r = 0; r <= worker->last_row; ++r) {
        const auto output = part<OutputEntry>(row);
        if (!output) return fail(entry, "worker outside the bucket");
        row += kWords<OutputEntry> + output->columns * words_per_column();
      }
    }
    return true;
  }

  template <class Header>
  bool check_grad_w(const Header& header, std::int64_t at) {
    if (key_.operation != Operation::GradW) return true;
    const auto [first, workers] = grad_w_table(header, at);
    if (workers < 1) return fail(at, "no workers for GradW");
    std::int64_t entry = first;
    for (std::int64_t i = 0; i < workers; ++i, entry += kWords<GradWWorkerEntry>) {
      const auto worker = part<GradWWorkerEntry>(entry);
      if (!worker) return fail(entry, "worker outside the bucket");
      std::int64_t row = entry + worker->first_output;
      for (std::int64_t seen = -std::int64_t{worker->skip}; seen < worker->count;) {
        const auto output = part<OutputEntry>(row);
        if (!output) return fail(entry, "run outside the bucket");
        const std::int64_t columns = columns_of(header, *output);
        seen += columns;
        row += kWords<OutputEntry> + columns;
      }
    }
    return true;
  }
  struct Table {
    std::int64_t first = 0, workers = 0;
  };
  Table grad_w_table(const ElementHeader& header, std::int64_t at) const {
    const std::int64_t count = kWords<ElementHeader> + header.workers * kWords<WorkerEntry>;
    if (count >= header.first_output || !has(at + count, 1)) return {};
    return {at + count + 1, std::int64_t{words_[at + count]}};
  }
  Table grad_w_table(const BlockHeader& header, std::int64_t at) const {
    return {at + kWords<BlockHeader>, header.grad_w_workers};
  }

  KernelKey key_;
  const KernelArgs& args_;
  BucketCapacity capacity_;
  CellSides sides_;
  const Word* words_;
  std::optional<WordsFault> fault_;
};

template <class Word>
std::optional<WordsFault> walk(const KernelKey& key, const KernelArgs& args,
                               const BucketCapacity& capacity) {
  Walk<Word> walk(key, args, capacity);
  return key.format == Format::Element ? walk.template run<ElementHeader>()
                                       : walk.template run<BlockHeader>();
}

}  // namespace

std::optional<WordsFault> check_words(const KernelKey& key, const KernelArgs& args,
                                      const BucketCapacity& capacity) {
  return key.word_bits == 16 ? walk<std::uint16_t>(key, args, capacity)
                             : walk<std::uint32_t>(key, args, capacity);
}

}  // namespace tessera::codelets
