#pragma once

#include <optional>

#include "tessera/planner/plan_json.hpp"
#include "tessera/report/dense_verdict.hpp"
#include "tessera/report/host_report.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/study/cost_model.hpp"
#include "tessera/study/forecast_model.hpp"
#include "tessera/study/timing.hpp"

namespace tessera::study {

// Returns the dense cost that a form of the layer is compared with. A program for a full matrix is
// a dense program, whatever it is made of, and is taken where it costs less.
Cost best_dense(CostModel& model, const Form& own, const Cost& sparse);

// Returns the cheapest of the forms in which the same layer may be stored.
Form best_form(CostModel& model, const Form& own);

// Compares a form of the layer with the dense layer, and adds what is known of other layers: the
// density up to which random patterns in its blocks pay and, if the form does not, what would.
// Takes some times as long as one cost, most where dense wins.
report::DenseComparison compare(CostModel& model, const Form& own);

// Returns what is known of other layers than a form that has been compared with a dense cost, which
// is missing if nothing dense fits. A density pays if its cost is below that of dense by more than
// the stated error.
report::Outlook outlook_of(CostModel& model, const Form& own,
                           const report::DenseComparison& comparison,
                           const std::optional<double>& dense);

// A plan beside the dense program of the same layer.
struct PlanVerdict {
  report::DenseBaseline dense;
  report::DenseComparison comparison;
};

// Returns whether a plan pays and, if it does not, what would. `ones` has the pattern of the layer
// as elements; nullptr: it is random. Returns no value in PopSparse's cost model, which leaves out
// costs that the dense plan has.
std::optional<PlanVerdict> plan_verdict(const planner::PlannedLayer& layer,
                                        const sparse::Csr<double>* ones);

// Returns what is known of other layers than that of a report. Costs of passes are compared with
// `dense`; of a product it is that without the move of the operand.
report::Outlook outlook_of(const report::LayerReport& report, const planner::Options& options,
                           const report::DenseComparison& comparison,
                           const report::DenseBaseline& dense, const sparse::Csr<double>* ones);

// Returns the measured passes of a run beside the fastest dense product of this computer, which is
// measured with as many threads. A dense product that would take long or much memory is not
// measured: forecasts of both sides are compared instead. What is said of other densities, blocks
// and batches is forecast. Returns no value if no pass was measured or R is dense in all passes.
std::optional<report::DenseComparison> host_run_verdict(const report::HostReport& report,
                                                        const Form& own,
                                                        const host::FoundRates& found,
                                                        const Stop& is_stopped);

}  // namespace tessera::study
