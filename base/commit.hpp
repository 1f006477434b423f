#pragma once

namespace tessera {

// Returns the commit of the sources for which the build was configured, for example "4f14576f";
// "unknown" outside of a clone. It is a function in a source of its own, so that a new commit
// compiles nothing else again. Thread-safe.
const char* commit();

}  // namespace tessera
