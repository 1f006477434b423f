// The report of one run.
const kAxes = ['g', 'x', 'y', 'z'];
const cut = (partition) => kAxes.map((d) => partition[d]).join('×');
// GradA may have its own layout, which has its own explanation.
const layoutsOf = (report) => [report.explanation].concat(report.explanation?.backward ?? []).filter((e) => e?.terms);
const stepsOf = (report) => report.passes.flatMap((p) => p.steps.map((s, i) => ({...s, pass: p.pass, number: i + 1})));
const overheadOf = (pass) => pass.phases.reduce((sum, f) => sum + f.overhead_cycles, 0);

// The beginning of every report, with the cards of this kind of run.
function opening(report, {size, density, data_type}, machine, cards) {
  const shape = `${size.x} outputs, ${size.y} inputs, batch ${size.z}`;
  document.getElementById('subtitle').textContent = `${shape}, density ${number(density)}, ${data_type} on ${machine}; ${report.source}`;
  document.title = `${document.getElementById('title').textContent}: ${shape}`;
  section('summary', 'Summary', element('div', {class: 'cards'}, card('status', report.status, report.status), ...cards), ...report.notes.map((n) => element('p', {}, n)));
}

// The cycles of the dense plan of the same passes, and how many times fewer those of the run are.
function denseCards(verdict) {
  if (!verdict) return [];
  if (verdict.dense_cycles === null) return [card('dense, cycles', 'does not fit')];
  return [card(`dense, ${verdict.passes.map((p) => p.pass).join(' + ')}, cycles (modelled)`, number(verdict.dense_cycles)),
    card('dense / sparse', number(verdict.dense_over_sparse))];
}

function summary(report) {
  const {problem, machine} = report.planned;
  const t = report.total;
  opening(report, problem, `${machine.name} (${number(machine.tiles)} tiles)`, [
    card(`cycles (${report.how.cycles})`, number(t.cycles)), card('cycles (planned)', number(t.planned_cycles)),
    card(`time (${report.how.seconds}), µs`, number(t.seconds * 1e6)),
    card(`moved (${report.how.moved_bytes}), bytes`, number(t.moved_bytes)),
    card('fullest tile, bytes', t.fullest_tile_bytes ? number(t.fullest_tile_bytes) : 'not built'),
    card('spilled blocks', number(report.buckets.spilled_blocks)), ...denseCards(report.verdict)]);
  if (report.verdict) document.querySelector('#summary .cards').after(element('p', {class: 'verdict'}, `Verdict: ${report.verdict.text}.`));
}

function planAndWhy(report) {
  const plan = report.planned.plan;
  const rows = [['tiles used', kAxes.reduce((all, d) => all * plan.partition[d], 1)],
    ['cut of groups, outputs, inputs, batch', cut(plan.partition)],
    ['forward kernel', plan.fwd], ['input gradient kernel', plan.grad_a], ['weight gradient kernel', plan.grad_w],
    ['bucket', `${number(report.buckets.capacity_values)} values, ${number(report.buckets.capacity_words)} words`], ['seed', report.seed]];
  const made = section('plan', 'Plan and why', table('Plan', ['what', 'chosen'], rows));
  for (const why of layoutsOf(report)) {
    made.append(element('h3', {}, why === report.explanation ? 'Why' : 'Why GradA has a layout of its own'),
      element('p', {}, `The best of ${number(why.partitions)} partitions that were looked at.`),
      table('Methods', ['kernels', 'best cut g×x×y×z', 'cycles lost', 'why'], why.methodsTried.map((m) => [m.methods, m.best ? cut(m.best.partition) : m.chosen ? cut(why.partition) : '-',
        m.best?.loses ?? (m.chosen ? 0 : '-'), m.chosen ? 'chosen' : m.best ? 'costs more' : `ruled out: ${m.ruledOutBy?.limit ?? m.ruledOutBy?.text ?? 'a limit'}`])),
      table('Limits', ['limit', 'lifting it gains, cycles'], why.limits.map((l) => [l.limit, l.gain])));
  }
}

function costByPhase(report) {
  const passes = report.passes;
  const made = section('cost', 'Cost by pass, planned against run');
  const names = [...new Set(passes.flatMap((p) => p.phases.map((f) => f.phase)))].concat('sync, launch');
  const run = (f) => f.compute_cycles + f.exchange_cycles + (f.control_cycles ?? 0);
  const value = (pass, name, isRun) => {
    if (name === 'sync, launch') return isRun ? overheadOf(pass) : pass.planned_overhead_cycles;
    const phase = pass.phases.find((f) => f.phase === name);
    return !phase ? 0 : isRun ? run(phase) : phase.planned_cycles;
  };
  const bars = passes.flatMap((p) => [p.pass + ' planned', p.pass + ' run']);
  const columns = names.map((name) => passes.flatMap((p) => [value(p, name, false), value(p, name, true)]));
  if (passes.length)
    chart(made, {label: 'Cycles of each pass by phase', height: () => 40 + legendHeight(names) + 34 * bars.length,
      option: () => lying(bars, {legend: {top: 0}, series: names.map((name, i) => ({name, type: 'bar', stack: 'cycles', data: columns[i]}))}),
      figures: () => ({headings: ['pass', ...names, 'all'], rows: bars.map((bar, i) => [bar, ...columns.map((c) => c[i]), columns.reduce((sum, c) => sum + c[i], 0)])})});
  const planned = report.planned.plan.cost.passes;
  const terms = [...new Set(planned.flatMap((p) => p.terms.filter((t) => t.cycles > 0).map((t) => t.name)))];
  const of = (pass, name) => pass.terms.filter((t) => t.name === name).reduce((sum, t) => sum + t.cycles, 0);
  chart(made, {label: 'Planned cycles of each pass by term of the cost model', height: () => 40 + legendHeight(terms) + 44 * planned.length,
    option: () => lying(planned.map((p) => p.pass), {legend: {top: 0}, series: terms.map((name) => ({name, type: 'bar', stack: 'cycles', data: planned.map((p) => of(p, name))}))}),
    figures: () => ({headings: ['pass', 'term', 'cycles', 'temporary memory, bytes'], rows: planned.flatMap((p) => p.terms.map((t) => [p.pass, t.name, t.cycles, t.temp]))})});
}

function runnersUp(report) {
  const others = layoutsOf(report).flatMap((e, i) => e.runnersUp.map((o) => ({...o, layout: i ? 'GradA' : 'Fwd'})));
  if (!others.length) return;
  const made = section('runners', 'Runners-up');
  const rows = others.map((o, i) => [`${i + 1} ${o.layout}: ${cut(o.partition)}`, o.loses, o.cycles, `${o.terms[0]?.pass} ${o.terms[0]?.name} ${o.terms[0]?.more > 0 ? '+' : ''}${number(o.terms[0]?.more)}`, o.methods]);
  chart(made, {label: 'Cycles that the next best plans lose', height: () => 60 + 34 * rows.length,
    option: () => lying(rows.map((r) => r[0]), {series: [{name: 'cycles lost', type: 'bar', data: rows.map((r) => r[1])}]}),
    figures: () => ({headings: ['layout: cut g×x×y×z', 'cycles lost', 'cycles', 'differs most in', 'kernels'], rows})});
}

const kLanes = ['compute', 'exchange', 'control', 'sync, launch'];

function stepBar(params, api) {
  const from = api.coord([api.value(0), api.value(2)]), to = api.coord([api.value(1), api.value(2)]);
  const height = 0.7 * api.size([0, 1])[1], view = params.coordSys;
  const x = Math.max(from[0], view.x), end = Math.min(to[0], view.x + view.width);
  return end < view.x || x > view.x + view.width ? null
    : {type: 'rect', style: api.style(), shape: {x, y: from[1] - height / 2, width: Math.max(1, end - x), height}};
}

function timeline(report) {
  const steps = stepsOf(report);
  if (!steps.length) return;
  const made = section('steps', 'Steps in time');
  let now = 0;
  for (const step of steps) {
    step.waits = now;
    step.starts = now + step.overhead_cycles;
    now = step.starts + step.cycles;
  }
  const end = now, passes = report.passes.map((p) => p.pass);
  const bars = (pass) => steps.filter((s) => s.pass === pass).flatMap((s) => [
    {name: `${pass} ${s.number} ${s.phase}`, value: [s.starts, s.starts + s.cycles, kLanes.indexOf(s.kind), s.slowest_tile]},
    {name: `before ${pass} ${s.number} ${s.phase}`, value: [s.waits, s.starts, 3, s.slowest_tile]}]).filter((b) => b.value[1] > b.value[0]);
  const entry = chart(made, {label: 'Each step of all passes, one after the other, in cycles', height: 280,
    option: () => ({...lying(kLanes), legend: {top: 0}, grid: {left: 4, right: 24, top: 36, bottom: 52, containLabel: true}, dataZoom: [{type: 'slider', height: 20, bottom: 8, filterMode: 'none', labelFormatter: brief}],
      tooltip: {confine: true, formatter: (p) => `${p.name}<br>${number(p.value[1] - p.value[0])} cycles from ${number(p.value[0])}<br>slowest tile ${p.value[3]}`},
      xAxis: {type: 'value', min: 0, max: end, splitNumber: isNarrow() ? 3 : 8, axisLabel: {formatter: brief}},
      series: passes.map((pass) => ({name: pass, type: 'custom', renderItem: stepBar, encode: {x: [0, 1], y: 2}, data: bars(pass)}))}),
    figures: () => ({headings: ['step', 'kind', 'starts at cycle', 'cycles', 'sync, launch, cycles', 'slowest tile', 'slowest / mean', 'moved, bytes'],
      rows: steps.map((s) => [`${s.pass} ${s.number} ${s.phase}`, s.kind, s.starts, s.cycles, s.overhead_cycles, s.slowest_tile, s.slowest_over_mean, s.moved_bytes])})});
  const parts = {'first half': [0, 50], 'second half': [50, 100], 'all steps': [0, 100]};
  for (const pass of passes) {
    const own = steps.filter((s) => s.pass === pass);
    if (own.length) parts[pass] = [100 * own[0].waits / end, 100 * (own.at(-1).starts + own.at(-1).cycles) / end];
  }
  made.insertBefore(zoomButtons(entry, parts), entry.place.closest('figure'));
}

function imbalance(report) {
  const busy = stepsOf(report).filter((s) => s.cycles > 0 && s.tiles > 0);
  if (!busy.length) return;
  const made = section('imbalance', 'Imbalance: the slowest tile of each step against the mean');
  made.append(table('The longest step of each pass', ['pass', 'longest step', 'cycles', 'slowest tile', 'slowest / mean', 'of all compute steps'],
    report.passes.filter((p) => p.imbalance).map((p) => [p.pass, `${p.imbalance.longest_step} ${p.imbalance.phase}`, p.imbalance.cycles, p.imbalance.slowest_tile,
      p.imbalance.slowest_over_mean, p.imbalance.compute_slowest_over_mean])));
  const kMost = 24;
  const shown = [...busy].sort((a, b) => b.cycles - a.cycles).slice(0, kMost).sort((a, b) => busy.indexOf(a) - busy.indexOf(b));
  const names = shown.map((s) => `${s.pass} ${s.number} ${s.phase}: tile ${s.slowest_tile}`);
  chart(made, {label: `Cycles of the slowest tile and of the mean${busy.length > kMost ? `, the ${kMost} longest of ${busy.length} steps` : ''}`, height: () => 70 + 34 * shown.length,
    option: () => lying(names, {legend: {top: 0}, series: [{name: 'slowest tile', type: 'bar', data: shown.map((s) => s.cycles)},
      {name: 'mean of those that took part', type: 'bar', data: shown.map((s) => s.tile_sum_cycles / s.tiles)}]}),
    figures: () => ({headings: ['step', 'kind', 'slowest tile', 'its cycles', 'mean, cycles', 'tiles that took part', 'slowest / mean'],
      rows: busy.map((s) => [`${s.pass} ${s.number} ${s.phase}`, s.kind, s.slowest_tile, s.cycles, s.tile_sum_cycles / s.tiles, s.tiles, s.slowest_over_mean])})});
}

function spills(report) {
  const b = report.buckets;
  const made = section('spills', 'Buckets, spills and propagation', table('Buckets', ['what', 'figure'], [
    ['records in all buckets', b.records], ['blocks', b.blocks], ['blocks that spilled into another bucket', b.spilled_blocks], ['spilled, %', b.blocks ? 100 * b.spilled_blocks / b.blocks : 0],
    ['partitions that buckets travel', b.travel_partitions], ['steps of travel', b.spill_steps], ['steps that are needed at least', b.spill_steps_at_least],
    ['values in the fullest bucket', b.fullest_values], ['values it has room for', b.capacity_values], ['words in the fullest bucket', b.fullest_words], ['words it has room for', b.capacity_words],
    ['bytes to send if the pattern changes', b.pattern_bytes]]));
  const ways = report.passes.map((p) => ({pass: p.pass, planned: 0, run: 0, steps: 0, ...p.phases.filter((f) => f.phase === 'propagate').map((f) => ({planned: f.planned_cycles, run: f.compute_cycles + f.exchange_cycles, steps: f.steps}))[0]}));
  if (ways.length) made.append(table('Propagation', ['pass', 'steps of propagation', 'planned, cycles', 'run, cycles'], ways.map((w) => [w.pass, w.steps, w.planned, w.run])));
  if (!report.tiles?.length) return;
  const kBins = 20, counts = Array(kBins).fill(0);
  for (const tile of report.tiles) ++counts[Math.min(kBins - 1, Math.floor(tile.fill * kBins))];
  const names = counts.map((_, i) => `${100 * i / kBins}-${100 * (i + 1) / kBins}`);
  chart(made, {label: 'Buckets by how full they are, % of their room for values', height: 260,
    option: () => ({tooltip: {trigger: 'axis', confine: true}, grid: {left: 4, right: 12, top: 16, bottom: 8, containLabel: true},
      xAxis: {type: 'category', data: names}, yAxis: {type: 'value', splitNumber: 4, axisLabel: {formatter: brief}}, series: [{name: 'buckets', type: 'bar', data: counts}]}),
    figures: () => ({headings: ['filled, %', 'buckets'], rows: names.map((name, i) => [name, counts[i]])})});
}

function checksAndOrigin(report) {
  if (report.passes.length) section('checks', 'Checks of results', table('Checks', ['pass', 'compared', 'wrong', 'largest error / bound'],
    report.passes.map((p) => [p.pass, p.check?.compared ?? 'not checked', p.check?.wrong, p.check?.largest_error_of_bound])));
  section('origin', 'How figures came about', table('Origin of figures', ['figure', 'how'], Object.entries(report.how)),
    element('h3', {}, 'Effective configuration'), table('Configuration', ['option', 'value'], Object.entries(report.configuration)));
}

function showRun(report) {
  const parts = report.host ? [hostSummary, measuredPasses, forecasts, cells, computer]
    : [summary, planAndWhy, costByPhase, runnersUp, tileMap, memory, liveness, timeline, imbalance, spills];
  for (const part of [...parts, checksAndOrigin]) part(report);
}
