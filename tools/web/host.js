// The parts of a page that show a run on this computer, whose times are measured.
const micro = (seconds) => seconds === undefined ? undefined : 1e6 * seconds;
const share = (part, whole) => part !== undefined && whole > 0 ? part / whole : undefined;
const percent = (part, whole) => part !== undefined && whole > 0 ? 100 * part / whole : undefined;
const ranOf = (report) => report.passes.filter((p) => p.runs > 0);

// Divides the seconds of all threads' kernels by the threads; time that is neither copy nor kernel is waiting.
function partsOf(report, pass) {
  const copies = pass.copy_seconds, kernels = pass.kernel_thread_seconds / report.host.threads;
  return {copies, kernels, rest: Math.max(0, pass.seconds - copies - kernels)};
}

// Returns the peak flops per second of all threads together; no value if it was not measured.
const peakOf = ({cores, threads, thread_peak_flops_per_second: one}) => one && one * Math.min(cores, threads);

function hostSummary(report) {
  const {host, total, how} = report, peak = peakOf(host);
  const rate = share(total.useful_flops, total.seconds);
  const cards = [card('encoded once, µs', number(micro(host.encode_seconds))), card('stored values', number(host.values))];
  if (rate !== undefined)
    cards.unshift(card(`time (${how.seconds}), µs`, number(micro(total.seconds))), card('useful GFLOP/s', number(1e-9 * rate)),
      ...(peak ? [card('of measured peak, %', number(percent(rate, peak)))] : []));
  document.getElementById('title').textContent = 'Time report';
  opening(report, {size: {g: host.groups, x: host.outputs, y: host.inputs, z: host.batch}, block: {rows: host.block_rows, cols: host.block_cols}, passes: report.passes.map((p) => p.pass), ...host}, `this computer (${host.cpu}, ${host.threads} of ${host.cores} cores)`, cards);
}

function measuredPasses(report) {
  const ran = ranOf(report);
  if (!ran.length) return;
  const peak = peakOf(report.host), names = ran.map((p) => p.pass), parts = ran.map((p) => partsOf(report, p));
  const kinds = Object.keys(parts[0]);
  const rate = (p) => p.useful_flops / p.seconds;
  const made = section('passes', 'Passes', element('p', {}, 'Times are those of the run whose time is the median; flops are counted, of stored values only. Kernels are what all threads spent in them over the number of threads, the rest is what is neither a copy nor a kernel.'),
    table('Passes', ['pass', 'R as', 'runs', 'time, µs', 'useful GFLOP/s', ...(peak ? ['of measured peak, %'] : [])],
      ran.map((p) => [p.pass, p.method, p.runs, micro(p.seconds), 1e-9 * rate(p), ...(peak ? [percent(rate(p), peak)] : [])])));
  chart(made, {label: 'Measured time of each pass and what it went on, µs', height: () => 40 + legendHeight(kinds) + 34 * ran.length,
    option: () => lying(names, {legend: {top: 0}, series: kinds.map((name) => ({name, type: 'bar', stack: 'time', data: parts.map((part) => micro(part[name]))}))}),
    figures: () => ({headings: ['pass', ...kinds.flatMap((name) => [`${name}, µs`, `${name}, %`])],
      rows: ran.map((p, i) => [p.pass, ...kinds.flatMap((name) => [micro(parts[i][name]), percent(parts[i][name], p.seconds)])])})});
}

function forecasts(report) {
  const {passes} = report, hasRun = ranOf(report).length > 0;
  const series = [{name: 'forecast', data: passes.map((p) => micro(p.forecast_seconds))}];
  if (hasRun) series.push({name: 'measured', data: passes.map((p) => micro(p.seconds))});
  const names = series.map((s) => s.name);
  const made = section('forecast', hasRun ? 'Forecast beside measured' : 'Forecast');
  chart(made, {label: hasRun ? 'Time that was forecast for each pass, and that it took, µs' : 'Time that is forecast for each pass, µs',
    height: () => 40 + legendHeight(names) + 44 * passes.length,
    option: () => lying(passes.map((p) => p.pass), {legend: {top: 0}, series: series.map((s) => ({...s, type: 'bar', data: s.data.map((v) => v ?? '-')}))}),
    figures: () => ({headings: ['pass', 'forecast, µs', ...(hasRun ? ['measured, µs', 'measured / forecast'] : [])],
      rows: passes.map((p) => [p.pass, micro(p.forecast_seconds), ...(hasRun ? [micro(p.seconds), share(p.seconds, p.forecast_seconds)] : [])])})});
}

// Shows the cells of sparse passes; dense passes have none.
function cells(report) {
  const {l1_bytes, l2_bytes, l3_bytes} = report.host, passes = report.passes.filter((p) => p.method === 'sparse');
  if (!passes.length) return;
  section('cells', 'How the layer is cut',
    element('p', {}, `A cell is the part of R that is worked on while its slice of the operand lies in a cache (${[l1_bytes, l2_bytes, l3_bytes].map(number).join(', ')} bytes). ` +
      'Outputs and inputs are those of the pass: what GradA puts out are the gradients of the layer\'s inputs.'),
    table('Cells', ['pass', 'outputs', 'inputs', 'batch', 'operand', 'sums'], passes.map(({pass, cells: c}) =>
      [pass, c.outputs, c.inputs, c.batch, c.packed ? 'copied' : 'read in place', c.gathered ? 'in a buffer' : 'in place'])));
}

// Shows what each rank has and does; a report of one process has no ranks.
function ranks(report) {
  const {ranks: parts, values} = report.host, ran = ranOf(report).filter((p) => p.ranks);
  if (!parts) return;
  const made = section('ranks', 'Ranks', element('p', {}, 'Each rank has a run of rows of R. It waits for the rows of operands that others send.'),
    table('Ranks', ['rank', 'first row', 'rows', 'values, %', 'threads', 'cores', 'peak memory, bytes'],
      parts.map((r, i) => [i, r.first_row, r.rows, percent(r.values, values), r.threads, r.cores, r.peak_bytes])));
  if (!ran.length) return;
  const names = parts.map((_, i) => `rank ${i}`), kinds = ran.map((p) => p.pass);
  chart(made, {label: 'Time of each rank, µs', height: () => 40 + legendHeight(kinds) + 34 * parts.length,
    option: () => lying(names, {legend: {top: 0}, series: ran.map((p) => ({name: p.pass, type: 'bar', stack: 'time', data: p.ranks.map((r) => micro(r.seconds))}))}),
    figures: () => ({headings: ['rank', 'pass', 'time, µs', 'waiting, %', 'received, bytes'],
      rows: parts.flatMap((_, i) => ran.map((p) => [i, p.pass, micro(p.ranks[i].seconds), percent(p.ranks[i].wait_seconds, p.ranks[i].seconds), p.ranks[i].received_bytes]))})});
}

function computer(report) {
  const {host} = report;
  section('computer', 'Computer and encoding', table('Computer and encoding', ['what', 'figure'], [
    ['processor', host.cpu], ['cores', host.cores], ['threads', host.threads],
    ['L1, L2, L3, bytes', [host.l1_bytes, host.l2_bytes, host.l3_bytes].map(number).join(', ')],
    ...(peakOf(host) ? [['measured peak of a thread, GFLOP/s', 1e-9 * host.thread_peak_flops_per_second]] : []),
    ['blocks of R', `${host.block_rows}×${host.block_cols}`], ['stored values', host.values], ['encoding, once, µs', micro(host.encode_seconds)],
    ['sums', host.partials_type], ['seed', report.seed]]));
}
