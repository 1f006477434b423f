#pragma once

#include <string_view>
#include <utility>

#include "tessera/planner/options.hpp"

namespace tessera::planner::internal {

// All quirks with their keys in option text. A test checks that the list is complete.
inline constexpr std::pair<std::string_view, bool PopLibsQuirks::*> kQuirks[] = {
    {"zeroCyclesPerPartial", &PopLibsQuirks::zero_cycles_per_partial},
    {"reductionMemoryTestsZ", &PopLibsQuirks::reduction_memory_tests_z},
    {"divideGradWOverheads", &PopLibsQuirks::divide_grad_w_overheads},
    {"gradWSwappedBytes", &PopLibsQuirks::grad_w_swapped_bytes},
    {"repeatFloatPairLoop", &PopLibsQuirks::repeat_float_pair_loop},
    {"transposeFromSwappedCounts", &PopLibsQuirks::transpose_from_swapped_counts},
    {"secondOperandsIfFetched", &PopLibsQuirks::second_operands_if_fetched},
    {"fiveWordsPerGradWWorker", &PopLibsQuirks::five_words_per_grad_w_worker},
    {"alignMetaWordsAsBytes", &PopLibsQuirks::align_meta_words_as_bytes},
    {"metaNotDividedByZ", &PopLibsQuirks::meta_not_divided_by_z},
    {"noEndMarkerRoom", &PopLibsQuirks::no_end_marker_room},
    {"doubleMemoryBound", &PopLibsQuirks::double_memory_bound},
    {"roomIgnoresScatter", &PopLibsQuirks::room_ignores_scatter},
    {"ignoreResidentMemory", &PopLibsQuirks::ignore_resident_memory},
    {"freeSteps", &PopLibsQuirks::free_steps},
    {"freePropagation", &PopLibsQuirks::free_propagation},
    {"averageTile", &PopLibsQuirks::average_tile},
    {"receivesOwnParts", &PopLibsQuirks::receives_own_parts},
    {"neverChoosesDense", &PopLibsQuirks::never_chooses_dense},
    {"evenOperandShares", &PopLibsQuirks::even_operand_shares},
    {"evenBatchParts", &PopLibsQuirks::even_batch_parts},
    {"checkElementOffsetsOnly", &PopLibsQuirks::check_element_offsets_only},
};

}  // namespace tessera::planner::internal
