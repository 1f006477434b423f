#pragma once

// Everything a program needs to plan, encode and run a sparse fully connected layer.

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/device/machine.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/io/read.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/no_fit.hpp"
#include "tessera/planner/plan_cache.hpp"
#include "tessera/planner/plan_json.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/report/report.hpp"
#include "tessera/runtime/batches.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/static_layer.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/verify/verify.hpp"
