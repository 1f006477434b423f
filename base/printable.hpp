#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// Controls whether line ends and tabs of a text are kept as they are.
enum class LineEnds { Keep, Escape };

// Returns text that is safe to show on a terminal. Control characters, the marks that reverse the
// direction of writing, and bytes that are not UTF-8 become escapes such as \x1b; all other
// characters, a backslash included, are kept. With LineEnds::Keep, line ends and tabs are kept
// too, as a message of several lines needs; a name that stands inside a message is escaped whole.
// The cost is linear in the length.
std::string printable(std::string_view text, LineEnds line_ends = LineEnds::Escape);

// Returns the legal range of an index as text: "0..4" for 5, and for 0 a remark that there is none.
std::string range_of_indices(std::int64_t count);

}  // namespace tessera
