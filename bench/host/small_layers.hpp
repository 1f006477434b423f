#pragma once

namespace tessera::bench {

// Prints the forward passes of small layers on one and on two threads, each beside its kernels, and
// the bars of both. Returns whether all were met. Times are those of the wall clock that one of ten
// passes stays below, because other programs may be using the cores.
bool run_small_bars();

}  // namespace tessera::bench
