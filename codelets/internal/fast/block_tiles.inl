// Tiles of sums of blocks, and the walks through the blocks that add to them. This is not a header, see lanes.inl.
#if defined(TESSERA_CODELETS_BLOCK_TILES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CODELETS_BLOCK_TILES_INL
#undef TESSERA_CODELETS_BLOCK_TILES_INL
#else
#define TESSERA_CODELETS_BLOCK_TILES_INL
#endif

#include <hwy/cache_control.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/fast/lanes.inl"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::codelets::internal::HWY_NAMESPACE {

// The rows of sums x vectors of sums that stay in registers are 16 of 32 registers, or 8 of 16. The
// other registers hold the input row, a factor and products. A step down the block loads one vector
// for each column of the tile and one factor for each row, so tiles that are nearer to a square
// need fewer loads per product.
inline constexpr std::size_t kTallest = kInstrumented ? 2 : kManyRegisters ? 8 : 4;
// The widest tile of the tallest height, and of smaller heights.
inline constexpr std::size_t kMostVectors = 2, kMostVectorsLow = kInstrumented ? 2 : 4;
// Tiles of square blocks of a known side have 24 sums (12 with 16 registers), which keep two units
// busy: in L1, 8 x 3 vectors reach 0.96 of the peak of a core that starts two products in a cycle,
// 8 x 2 and 4 x 4 reach 0.90, and 16 x 1, which loads a factor for every product, 0.82 (Sapphire
// Rapids). Panels of one vector have tiles of twice the height, for the same reason.
constexpr std::size_t square_height(std::int64_t side, std::size_t vectors) {
  return std::min(static_cast<std::size_t>(side), vectors == 1 ? 2 * kTallest : kTallest);
}
constexpr std::size_t square_vectors(std::int64_t side) {
  return static_cast<std::size_t>(side) < kTallest ? kMostVectorsLow : kMostVectors + 1;
}

// Tiles of a higher block are computed in turns for so many bytes of input rows, 48 rows of three
// vectors, so that the rows are read from L1 again. The next ones are fetched meanwhile, and both
// have to fit in an L1 cache of 32 KiB beside factors and sums.
inline constexpr std::size_t kBytesInTurns = 9 << 10;

struct Shared {};  // the blocks of a run add to the same sums

// The walk over the values of a block: by `height` down the tile, by `depth` along each sum, which
// has `terms` terms.
struct AnyWalk {
  static constexpr std::int64_t kRows = 0;  // known only at run time
  static constexpr bool kPaired = false;    // true: terms in the order of paired_column()
  std::int64_t height, depth, terms;
};
// The forward walk through blocks of kSide x kSide. With distances that the compiler knows, eight
// rows of factors need one register and not eight (blocks of 16: 1.2 times the rate).
template <std::int64_t kSide>
struct SquareWalk {
  static constexpr bool kPaired = false;
  static constexpr std::int64_t kRows = kSide, height = kSide, depth = 1, terms = kSide;
};

// The same walks with the terms in the order of paired_column().
template <class Walk>
struct PairedWalk : Walk {
  static constexpr bool kPaired = true;
};

// The blocks whose products are added to one tile of sums. The values of block b begin at factors +
// b * area.
template <class In, class Walk>
struct BlockRun {
  const float* factors;
  std::int64_t area;
  std::int64_t blocks;
  Walk walk;
  const std::uint32_t* in_row;  // the first input row of each block (transposed: one for all)
  std::int64_t known;           // number of entries of in_row: also of blocks that follow the run
  const In* in;
  std::int64_t in_stride;
  std::int64_t z;
  bool replaces;  // true: sums begin at zero

  // Returns the input rows, in the panel in which they are needed, of the block that follows block
  // b of the panel at `column` after `ahead` others. After the last block the first ones follow,
  // `step` columns farther; a step of 0 says that this is the last panel, and then the blocks after
  // the run follow in the first.
  HWY_INLINE const In* rows_ahead(std::int64_t b, std::int64_t ahead, std::int64_t column,
                                  std::int64_t step) const {
    const std::int64_t i = b + ahead;
    if (i < blocks) return in + in_row[i] * in_stride + column;
    if (step == 0) return in + in_row[std::min(i, known - 1)] * in_stride;
    return in + in_row[std::min(i - blocks, blocks - 1)] * in_stride + column + step;
  }
};

// The memory that the sums of a tile come from and go to. They begin at zero if `from` is null.
struct SumPlaces {
  const float* from;
  std::int64_t from_stride;
  float* to;
  std::int64_t to_stride;
};

template <class In, std::size_t kLanes, std::size_t kVectors, std::size_t kHeight>
struct Tile {
  using Vector = FloatVector<kLanes>;
  Vector sums[kHeight][kVectors];

  // An implicit constructor has the compiler's instruction set and not this namespace's, and g++
  // for Arm then cannot put those of the vectors into it.
  HWY_INLINE Tile() {}

  HWY_INLINE void clear() {
    for (auto& row : sums)
      for (Vector& sum : row) sum = hn::Zero(Floats<kLanes>());
  }
  HWY_INLINE void load(const float* from, std::int64_t stride, const Panel& panel) {
    for (std::size_t h = 0; h < kHeight; ++h)
      for (std::size_t v = 0; v < kVectors; ++v)
        sums[h][v] = load_lanes<kLanes>(from + static_cast<std::int64_t>(h) * stride +
                                        column_of<kLanes, kVectors>(panel, v));
  }
  HWY_INLINE void store(float* to, std::int64_t stride, const Panel& panel) const {
    for (std::size_t h = 0; h < kHeight; ++h)
      for (std::size_t v = 0; v < kVectors; ++v)
        hn::StoreU(
            sums[h][v], Floats<kLanes>(),
            to + static_cast<std::int64_t>(h) * stride + column_of<kLanes, kVectors>(panel, v));
  }
  // Adds one input row times one factor for each row of the tile.
  HWY_INLINE void add(const In* in, const float* factors, std::int64_t step, const Panel& panel) {
    Vector row[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v)
      row[v] = load_lanes<kLanes>(in + column_of<kLanes, kVectors>(panel, v));
    for (std::size_t h = 0; h < kHeight; ++h) {
      const auto factor = hn::Set(Floats<kLanes>(), factors[static_cast<std::int64_t>(h) * step]);
      for (std::size_t v = 0; v < kVectors; ++v)
        sums[h][v] = add_product_lanes(sums[h][v], factor, row[v]);
    }
  }
};

// Adds the products of blocks [first, last) of the run to a tile of sums. Blocks may be anywhere,
// so the hardware prefetcher cannot predict their input rows: meanwhile those of the block that
// follows after `ahead` others are fetched. Where kTurns tiles use the rows in turns, each fetches
// a part, and the last one the values, too.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kHeight, std::size_t kTurn,
          std::size_t kTurns, class In, class Walk>
HWY_INLINE void add_blocks(const BlockRun<In, Walk>& run, std::int64_t first, std::int64_t last,
                           std::int64_t ahead, const float* factors_of_tile,
                           const SumPlaces& places, const Panel& panel) {
  Tile<In, kLanes, kVectors, kHeight> tile;
  if (places.from == nullptr)
    tile.clear();
  else
    tile.load(places.from, places.from_stride, panel);
  constexpr auto kWidth = static_cast<std::int64_t>(kLanes * kVectors);
  const std::int64_t step = panel.first + kWidth < run.z ? kWidth : 0;
  for (std::int64_t b = first; b < last; ++b) {
    const float* factors = factors_of_tile + b * run.area;
    const In* in = run.in + run.in_row[b] * run.in_stride + panel.first;
    const std::int64_t to_rows = run.rows_ahead(b, ahead, panel.first, step) - in;
    [[maybe_unused]] const float* next_factors = run.factors + (b + ahead) * run.area;
    // Two terms at once where pairs are whole: distances are then known to the compiler.
    constexpr std::int64_t kTerms = Walk::kPaired && Walk::kRows > 0 ? 2 : 1;
    for (std::int64_t k = 0; k < run.walk.terms;
         k += kTerms, in += kTerms * run.in_stride, factors += kTerms * run.walk.depth) {
      HWY_UNROLL(2)
      for (std::int64_t i = 0; i < kTerms; ++i) {
        const std::int64_t to = kTerms == 2     ? 1 - i
                                : Walk::kPaired ? paired_column(k, run.walk.terms) - k
                                                : 0;
        const In* row = in + to * run.in_stride;
        for (std::size_t v = kTurn; v < kVectors; v += kTurns)
          hwy::Prefetch(row + to_rows + column_of<kLanes, kVectors>(panel, v));
        if constexpr (std::is_same_v<In, float> && kTurns > 1 && kTurn + 1 == kTurns)
          hwy::Prefetch(next_factors + (k + i) * run.walk.height);
        tile.add(row, factors + to * run.walk.depth, run.walk.height, panel);
      }
    }
  }
  tile.store(places.to, places.to_stride, panel);
}

// Computes out[h][z] += all blocks of the run, for kHeight rows and one panel.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kHeight, class In, class Walk>
HWY_INLINE void add_tile(const BlockRun<In, Walk>& run, float* out, std::int64_t out_stride,
                         const Panel& panel) {
  constexpr std::int64_t kAhead = 2;  // one is 2 % slower if rows come from L3, three is as fast
  add_blocks<kLanes, kVectors, kHeight, 0, 1>(
      run, 0, run.blocks, kAhead, run.factors,
      {run.replaces ? nullptr : out, out_stride, out, out_stride}, panel);
}

// True on processors that read rows from L2 again about as fast as they compute: AMD's with 512-bit
// units have an L1 cache above 32 KiB. Zen 5, blocks of 16 in turns: 512 columns 0.78 to 0.95 of the
// time, 256 columns 0.90 and 0.98, 128 columns 0.95 to 0.97.
HWY_INLINE bool rereads_rows() {
#if HWY_TARGET == HWY_AVX3 && defined(_SC_LEVEL1_DCACHE_SIZE)
  static const bool rereads =
      __builtin_cpu_is("amd") != 0 && sysconf(_SC_LEVEL1_DCACHE_SIZE) > 32 << 10;
  return rereads;
#else
  return false;
#endif
}

// True if rows so far apart fall into so few sets of an L1 cache that it holds those of two blocks
// of 16 at most, and reading them again takes time.
template <class In>
HWY_INLINE bool shares_sets(std::int64_t stride) {
  constexpr std::int64_t kDistance = 512;
  if (rereads_rows()) return false;
  return stride * static_cast<std::int64_t>(sizeof(In)) % kDistance == 0;
}

// Computes the rows of blocks that are kTiles tiles high, for one panel: the tiles take turns, some
// blocks at a time, and keep their sums in L1 between them.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kHeight, std::size_t kTiles,
          class In, class Walk>
HWY_INLINE void add_in_turns(const BlockRun<In, Walk>& run, float* out, std::int64_t out_stride,
                             const Panel& panel) {
  constexpr std::size_t kWidth = kLanes * kVectors, kRows = kTiles * kHeight;
  constexpr auto kMost = static_cast<std::int64_t>(
      std::max<std::size_t>(kBytesInTurns / (kWidth * sizeof(In) * kRows), 1));
  const std::int64_t turn_blocks = shares_sets<In>(run.in_stride) ? 1 : kMost;
  const std::int64_t ahead = std::min(turn_blocks, run.blocks);
  alignas(64) float sums[kRows * kWidth];
  for (std::int64_t first = 0; first < run.blocks; first += turn_blocks) {
    const std::int64_t last = std::min(first + turn_blocks, run.blocks);
    const auto add_turn = [&](auto turn) HWY_ATTR {
      constexpr std::size_t kTurn = turn;
      constexpr auto kRow = static_cast<std::int64_t>(kTurn * kHeight);
      float* own = sums + kTurn * kHeight * kWidth;
      float* result = out + kRow * out_stride;
      SumPlaces places{own, kWidth, own, kWidth};
      if (first == 0) {
        places.from = run.replaces ? nullptr : result;
        places.from_stride = out_stride;
      }
      if (last == run.blocks) {
        places.to = result;
        places.to_stride = out_stride;
      }
      add_blocks<kLanes, kVectors, kHeight, kTurn, kTiles>(
          run, first, last, ahead, run.factors + kRow * run.walk.height, places, panel);
    };
    [&]<std::size_t... kTurn>(std::index_sequence<kTurn...>) HWY_ATTR {
      (add_turn(std::integral_constant<std::size_t, kTurn>()), ...);
    }(std::make_index_sequence<kTiles>());
  }
}

// Forward: all blocks of a block row add to the same sums.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kHeight, class In, class Walk>
HWY_INLINE void add_tiles(const BlockRun<In, Walk>& run, float* out, std::int64_t out_stride,
                          const Panel& panel, Shared) {
  add_tile<kLanes, kVectors, kHeight>(run, out, out_stride, panel);
}

// Transposed: each block has different sums, from row `out_row[b]` on, and the input rows are the
// same.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kHeight, class In, class Walk>
HWY_INLINE void add_tiles(const BlockRun<In, Walk>& run, float* out, std::int64_t out_stride,
                          const Panel& panel, const std::uint32_t* out_row) {
  BlockRun<In, Walk> one = run;
  one.blocks = 1;
  for (std::int64_t b = 0; b < run.blocks; ++b, one.factors += run.area)
    add_tile<kLanes, kVectors, kHeight>(one, out + out_row[b] * out_stride, out_stride, panel);
}

// Computes `rows` rows of sums, in tiles of kHeight rows and then of half as many.
template <std::size_t kHeight, std::size_t kLanes, std::size_t kVectors, class In, class Walk,
          class OutRows>
HWY_INLINE void add_rows(BlockRun<In, Walk> run, float* out, std::int64_t out_stride,
                         std::int64_t rows, const Panel& panel, OutRows out_rows) {
  constexpr auto kRows = static_cast<std::int64_t>(kHeight);
  for (; rows >= kRows; rows -= kRows) {
    add_tiles<kLanes, kVectors, kHeight>(run, out, out_stride, panel, out_rows);
    run.factors += kRows * run.walk.height;
    out += kRows * out_stride;
  }
  if constexpr (kHeight > 1 && (Walk::kRows == 0 || Walk::kRows % kRows != 0))
    add_rows<kHeight / 2, kLanes, kVectors>(run, out, out_stride, rows, panel, out_rows);
}

// Works panel by panel, so that all rows of the blocks use a panel's input rows while they are in
// L1.
template <std::size_t kHeight, std::size_t kMost, class In, class Walk, class OutRows>
HWY_INLINE void add_panels(const BlockRun<In, Walk>& run, float* out, std::int64_t out_stride,
                           std::int64_t rows, std::int64_t z, OutRows out_rows) {
  with_lanes_for(z, [&](auto lanes) {
    constexpr std::size_t kLanes = lanes;
    constexpr std::size_t kWidest = kLanes == kNativeLanes ? kMost : 2;
    for_each_panel<kLanes, kWidest>(z, [&](const Panel& panel, auto vectors) {
      add_rows<kHeight, kLanes, vectors>(run, out + panel.first, out_stride, rows, panel, out_rows);
    });
  });
}

// Uses panels of one vector, and one panel of two vectors at the end if z is no multiple of a
// vector: there the last vector overlaps the one before it. Every input row is then read once for
// each panel.
template <class In, class Walk>
HWY_INLINE void add_single_vectors(const BlockRun<In, Walk>& run, float* out,
                                   std::int64_t out_stride) {
  constexpr auto kStep = static_cast<std::int64_t>(kNativeLanes);
  constexpr std::size_t kTiles = static_cast<std::size_t>(Walk::kRows) / kTallest;
  const std::int64_t single = run.z % kStep == 0 ? run.z : (run.z / kStep - 1) * kStep;
  Panel panel{0, 0};
  for (; panel.first < single; panel.first += kStep)
    add_tile<kNativeLanes, 1, kTiles * kTallest>(run, out + panel.first, out_stride, panel);
  if (single == run.z) return;
  panel.last = run.z - single - kStep;
  add_in_turns<kNativeLanes, 2, kTallest, kTiles>(run, out + single, out_stride, panel);
}

// The same as add_panels() for square blocks of a known side and at least one vector of columns.
template <class In, class Walk>
HWY_INLINE void add_square_panels(const BlockRun<In, Walk>& run, float* out,
                                  std::int64_t out_stride) {
  // Rows that share sets do not stay in L1 for turns of more than one block. Halves take two
  // operations a vector to convert, so their rows are read once, too.
  if constexpr (Walk::kRows == 2 * kTallest) {
    const bool shares = shares_sets<In>(run.in_stride);
    if constexpr (kManyRegisters) {
      if (std::is_same_v<In, Half> || shares) return add_single_vectors(run, out, out_stride);
    } else if (shares) {
      return add_panels<kTallest, kMostVectors>(run, out, out_stride, Walk::kRows, run.z, Shared());
    }
  }
  constexpr std::size_t kMost = square_vectors(Walk::kRows);
  for_each_panel<kNativeLanes, kMost>(run.z, [&](const Panel& panel, auto vectors) HWY_ATTR {
    constexpr std::size_t kHeight = square_height(Walk::kRows, vectors);
    constexpr std::size_t kTiles = static_cast<std::size_t>(Walk::kRows) / kHeight;
    if constexpr (kTiles == 1)
      add_tile<kNativeLanes, vectors, kHeight>(run, out + panel.first, out_stride, panel);
    else
      add_in_turns<kNativeLanes, vectors, kHeight, kTiles>(run, out + panel.first, out_stride,
                                                           panel);
  });
}

template <class In, class Walk, class OutRows>
HWY_INLINE void add_all(const BlockRun<In, Walk>& run, float* out, std::int64_t out_stride,
                        std::int64_t rows, std::int64_t z, OutRows out_rows) {
  if constexpr (Walk::kRows > 0) {
    add_square_panels(run, out, out_stride);
  } else if (rows >= static_cast<std::int64_t>(kTallest)) {
    add_panels<kTallest, kMostVectors>(run, out, out_stride, rows, z, out_rows);
  } else {
    add_panels<kTallest / 2, kMostVectorsLow>(run, out, out_stride, rows, z, out_rows);
  }
}

// Returns the values as floats: in place, or converted into `scratch`.
HWY_INLINE const float* as_floats(const float* values, std::int64_t, float*) { return values; }
template <class In>
HWY_INLINE const float* as_floats(const In* values, std::int64_t count, float* scratch) {
  constexpr auto kStep = static_cast<std::int64_t>(kNativeLanes);
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep)
    hn::StoreU(load_lanes<kNativeLanes>(values + i), Floats<kNativeLanes>(), scratch + i);
  for (; i < count; ++i) scratch[i] = to_float(values[i]);
  return scratch;
}

template <class In>
struct Scratch {
  float floats[std::is_same_v<In, float> ? 1 : kMostBlockValues];
};

// Returns the blocks from `first` on: at most `most` of them, and no more than fit in `scratch` as
// floats.
template <class In, class Walk>
HWY_INLINE BlockRun<In, Walk> run_of(const BlockSums<In>& args, const Walk& walk,
                                     Scratch<In>& scratch, std::int64_t first, std::int64_t most) {
  const std::int64_t area = args.rows * args.cols;
  const std::int64_t known = static_cast<std::int64_t>(args.columns.size()) - first;
  const std::int64_t fit = std::is_same_v<In, float> ? known : kMostBlockValues / area;
  const std::int64_t blocks = std::min({known, most, fit});
  return {.factors = as_floats(args.values + first * area, blocks * area, scratch.floats),
          .area = area,
          .blocks = blocks,
          .walk = walk,
          .in_row = args.columns.data() + first,
          .known = known + args.next_columns,
          .in = args.in,
          .in_stride = args.in_stride,
          .z = args.z,
          .replaces = args.replaces && first == 0};
}

}  // namespace tessera::codelets::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
