// The report of one run.
const kAxes = ['g', 'x', 'y', 'z'];
const cut = (partition) => kAxes.map((d) => partition[d]).join('×');
const passesOf = (plan) => plan.cost.passes.map((p) => p.pass);
// The plan of a pattern that stays has no partition and no buckets.
const isStatic = (plan) => plan.z_parts !== undefined;

// Returns the layouts of a plan, each with its passes, explanation and tiles. GradA may have a layout of its own, that of
// transpose(R): its axes x and y are those of the layer exchanged, its Fwd is the layer's GradA, and it may run GradW.
function layoutsOf(report) {
  const {plan} = report.planned, own = plan.backward?.[0];
  const isOwn = (pass) => Boolean(own) && (pass === 'GradA' || (pass === 'GradW' && passesOf(own).includes(pass)));
  const all = [{plan, isTurned: false, why: report.explanation, tiles: report.tiles}];
  if (own) all.push({plan: own, isTurned: true, why: [].concat(report.explanation?.backward ?? [])[0], tiles: report.transposed_tiles});
  return all.map((layout) => ({...layout, passes: passesOf(plan).filter((pass) => isOwn(pass) === layout.isTurned),
    cut: (p) => cut(layout.isTurned ? {...p, x: p.y, y: p.x} : p),
    passName: (pass) => layout.isTurned && pass === 'Fwd' ? 'GradA' : pass}));
}
const stepsOf = (report) => report.passes.flatMap((p) => p.steps.map((s, i) => ({...s, pass: p.pass, number: i + 1})));
const overheadOf = (pass) => pass.phases.reduce((sum, f) => sum + f.overhead_cycles, 0);

// The beginning of every report, with the cards of this kind of run.
function opening(report, {size, block, density, data_type, passes}, machine, cards) {
  const groups = size.g > 1 ? `${size.g} groups of ` : '';
  const shape = `${groups}${size.x} outputs, ${size.y} inputs, batch ${size.z}, ${blockName(block)}`;
  const of = passes.length ? ', ' + passes.join(' + ') : '';
  document.getElementById('subtitle').textContent = `${shape}, density ${number(density)}, ${data_type}${of} on ${machine}; ${report.source}`;
  document.title = `${document.getElementById('title').textContent}: ${shape}${of}`;
  if (report.verdict) verdictFirst(report);
  const made = [card('version', `${report.tool.name} ${report.tool.version}`), ...(report.date ? [card('page made on', report.date)] : [])];
  section('summary', 'Summary', element('div', {class: 'cards'}, card('status', report.status, report.status), ...cards, ...made), ...report.notes.map((n) => element('p', {}, n)));
}

// Cycles, or microseconds on this computer, of the passes that were compared with dense.
function verdictFirst({verdict, host}) {
  const [unit, key, scale] = host ? ['µs', 'seconds', 1e6] : ['cycles', 'cycles', 1];
  const bar = (name) => [name, verdict[`${name}_${key}`] && scale * verdict[`${name}_${key}`]];
  lead(verdict.text, unit, [bar('sparse'), bar('dense')]);
}

const blockName = ({rows, cols}) => rows * cols === 1 ? 'elements' : `${rows}×${cols} blocks`;

// The cycles of the dense plan of the same passes, and how many times fewer those of the run are.
function denseCards(verdict) {
  if (!verdict) return [];
  if (verdict.dense_cycles === null) return [card('dense, cycles', 'does not fit')];
  return [card(`dense, ${verdict.passes.map((p) => p.pass).join(' + ')}, cycles (modelled)`, number(verdict.dense_cycles)),
    card('dense / sparse', verdict.dense_over_sparse === null ? 'only dense fits' : number(verdict.dense_over_sparse))];
}

// The useful rate of a run, the share of all tiles' cycles that they compute, and the part that takes most cycles.
function rateCards(report) {
  const {total, passes} = report, tiles = report.planned.machine.tiles;
  if (!(total.cycles > 0)) return [];
  const busy = stepsOf(report).filter((s) => s.kind === 'compute').reduce((sum, s) => sum + s.tile_sum_cycles, 0);
  const parts = passes.flatMap((p) => [...p.phases.map((f) => ({name: `${f.phase} of ${p.pass}`, cycles: f.compute_cycles + f.exchange_cycles + (f.control_cycles ?? 0)})),
    {name: `barriers and launches of ${p.pass}`, cycles: overheadOf(p)}]);
  const most = parts.reduce((a, b) => b.cycles > a.cycles ? b : a);
  return [card('useful GFLOP/s', number(1e-9 * total.useful_flops / total.seconds)), card('tiles compute, % of all cycles', number(100 * busy / (tiles * total.cycles))),
    card('most cycles', `${most.name}, ${number(100 * most.cycles / total.cycles)} %`)];
}

function summary(report) {
  const {problem, machine, plan} = report.planned;
  const t = report.total;
  opening(report, {...problem, passes: passesOf(plan)}, `${machine.name} (${number(machine.tiles)} tiles)`, [
    card(`cycles (${report.how.cycles})`, number(t.cycles)), card('cycles (planned)', number(t.planned_cycles)),
    card(`time (${report.how.seconds}), µs`, number(t.seconds * 1e6)), ...rateCards(report),
    card(`moved (${report.how.moved_bytes}), bytes`, number(t.moved_bytes)),
    card('fullest tile, bytes', t.fullest_tile_bytes ? number(t.fullest_tile_bytes) : 'not built'),
    ...(isStatic(plan) ? [] : [card('spilled blocks', number(report.buckets.spilled_blocks))]), ...denseCards(report.verdict)]);
}

// The same table for a pattern that stays: all passes have their blocks on the same tiles.
function staticRows({parts, bands, tiles}, passes, report) {
  const rows = {
    'parts of the batch': parts.length, 'columns of the largest part': Math.max(0, ...parts.map((p) => p.end - p.begin)),
    'bands of block columns': bands.length - 1, 'tiles used': tiles, 'R stored': `as ${blockName(report.planned.problem.block)}, with constant words`,
    'blocks': report.buckets.blocks,
  };
  return Object.entries(rows).map(([what, value]) => [what, ...passes.map(() => value)]);
}

// The rows of the table of the plan: what, and its value for each pass.
function planRows(layouts, passes) {
  const layoutOf = (pass) => layouts.find((layout) => layout.passes.includes(pass));
  // The parts of a pass. A dense plan cuts each pass in its own way, as a product of rows, inner dimension and columns.
  const partsOf = (pass, plan) => {
    const parts = plan.dense?.passes.find((p) => p.product.pass === pass)?.parts;
    if (!parts) return plan.partition;
    const {rows, inner, columns} = parts, g = plan.dense.groups;
    return pass === 'GradW' ? {g, x: rows, y: columns, z: inner} : pass === 'GradA' ? {g, x: inner, y: rows, z: columns} : {g, x: rows, y: inner, z: columns};
  };
  const kernel = (pass, {plan, isTurned}) => plan.dense ? 'dense product' : pass === 'GradW' ? plan.grad_w : pass === 'Fwd' ? plan.fwd : isTurned ? `${plan.fwd} of transpose(R)` : plan.grad_a;
  const rows = {
    'layout': (_, layout) => layout.isTurned ? 'own, of transpose(R)' : 'of Fwd',
    'tiles used': (pass, {plan}) => kAxes.reduce((all, d) => all * partsOf(pass, plan)[d], 1),
    'cut of groups, outputs, inputs, batch': (pass, layout) => layout.cut(partsOf(pass, layout.plan)),
    'kernel': kernel,
    'travels': (pass, {plan}) => pass !== 'GradW' ? 'operands' : plan.grad_w_exchange_buckets ? 'buckets' : 'operands',
    'R stored': (_, {plan}) => plan.dense ? 'dense, without buckets' : (plan.use_dense ? 'dense in ' : 'as ') + blockName(plan.block),
    'bucket, values': (_, {plan}) => plan.dense ? '-' : plan.nonzeros_per_bucket,
    'bucket, words': (_, {plan}) => plan.dense ? '-' : plan.fwd_meta_words + plan.grad_a_meta_words,
  };
  return Object.entries(rows).map(([what, of]) => [what, ...passes.map((pass) => of(pass, layoutOf(pass)))]);
}

function planAndWhy(report) {
  const {plan} = report.planned, layouts = layoutsOf(report), passes = passesOf(plan);
  const rows = isStatic(plan) ? staticRows(plan, passes, report) : planRows(layouts, passes);
  const made = section('plan', isStatic(plan) ? 'Plan of a pattern that stays' : 'Plan and why', table('Plan', ['what', ...passes], rows));
  for (const {why, cut, passes, plan} of layouts.filter((layout) => layout.why?.terms)) {
    const of = passes.join(' + ');
    made.append(element('h3', {}, `Why, for ${of}`), element('p', {}, `The best of ${number(why.partitions)} partitions that were looked at.`),
      table(`Methods of ${of}`, ['kernels', 'best cut g×x×y×z', 'cycles lost', 'why'], why.methodsTried.map((m) => [m.methods, m.best ? cut(m.best.partition) : m.chosen ? cut(plan.partition) : '-',
        m.best?.loses ?? (m.chosen ? 0 : '-'), m.chosen ? 'chosen' : m.best ? 'costs more' : `ruled out: ${m.ruledOutBy?.limit ?? m.ruledOutBy?.text ?? 'a limit'}`])),
      why.limits.length > 0 ? table(`Limits of ${of}`, ['limit', 'lifting it gains, cycles'], why.limits.map((l) => [l.limit, l.gain])) : '');
  }
}

function costByPhase(report) {
  const passes = report.passes;
  const made = section('cost', 'Cost by pass, planned against run');
  const names = [...new Set(passes.flatMap((p) => p.phases.map((f) => f.phase)))].concat('barriers and launches');
  const run = (f) => f.compute_cycles + f.exchange_cycles + (f.control_cycles ?? 0);
  const value = (pass, name, isRun) => {
    if (name === 'barriers and launches') return isRun ? overheadOf(pass) : pass.planned_overhead_cycles;
    const phase = pass.phases.find((f) => f.phase === name);
    return !phase ? 0 : isRun ? run(phase) : phase.planned_cycles;
  };
  const bars = passes.flatMap((p) => [p.pass + ' planned', p.pass + ' run']);
  const columns = names.map((name) => passes.flatMap((p) => [value(p, name, false), value(p, name, true)]));
  if (passes.length)
    chart(made, {label: 'Cycles of each pass by phase', height: () => 40 + legendHeight(names) + 34 * bars.length,
      option: () => lying(bars, {legend: {top: 0}, series: names.map((name, i) => ({name, type: 'bar', stack: 'cycles', itemStyle: {color: colorOf(name)}, data: columns[i]}))}),
      figures: () => ({headings: ['pass', ...names, 'all'], rows: bars.map((bar, i) => [bar, ...columns.map((c) => c[i]), columns.reduce((sum, c) => sum + c[i], 0)])})});
  const planned = report.planned.plan.cost.passes;
  const terms = [...new Set(planned.flatMap((p) => p.terms.filter((t) => t.cycles > 0).map((t) => t.name)))];
  const of = (pass, name) => pass.terms.filter((t) => t.name === name).reduce((sum, t) => sum + t.cycles, 0);
  chart(made, {label: 'Planned cycles of each pass by term of the cost model', height: () => 40 + legendHeight(terms) + 44 * planned.length,
    option: () => lying(planned.map((p) => p.pass), {legend: {top: 0}, series: terms.map((name) => ({name, type: 'bar', stack: 'cycles', itemStyle: {color: colorOf(name)}, data: planned.map((p) => of(p, name))}))}),
    figures: () => ({headings: ['pass', 'term', 'cycles', 'temporary memory, bytes'], rows: planned.flatMap((p) => p.terms.map((t) => [p.pass, t.name, t.cycles, t.temp]))})});
}

function runnersUp(report) {
  const rows = layoutsOf(report).flatMap(({why, cut, passes, passName}) => (why?.runnersUp ?? []).map((o, i) => {
    const term = o.terms[0];
    return [`${passes.join(' + ')}, ${i + 2}: ${cut(o.partition)}`, o.loses, o.cycles,
      term ? `${passName(term.pass)} ${term.name} ${term.more > 0 ? '+' : ''}${number(term.more)}` : '-', o.methods];
  }));
  if (!rows.length) return;
  const made = section('runners', 'Runners-up');
  chart(made, {label: 'Cycles that the next best plans lose', height: () => 60 + 34 * rows.length,
    option: () => lying(rows.map((r) => r[0]), {series: [{name: 'cycles lost', type: 'bar', data: rows.map((r) => r[1])}]}),
    figures: () => ({headings: ['passes, place: cut g×x×y×z', 'cycles lost', 'cycles', 'differs most in', 'kernels'], rows})});
}

const kLanes = ['compute', 'exchange', 'control', 'barriers and launches'];

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
      tooltip: {confine: true, formatter: (p) => tipOf(p.name, `${number(p.value[1] - p.value[0])} cycles from ${number(p.value[0])}`, `slowest tile ${p.value[3]}`)},
      xAxis: {type: 'value', min: 0, max: end, splitNumber: isNarrow() ? 3 : 8, axisLabel: {formatter: brief}},
      series: passes.map((pass) => ({name: pass, type: 'custom', renderItem: stepBar, encode: {x: [0, 1], y: 2}, data: bars(pass)}))}),
    figures: () => ({headings: ['step', 'kind', 'starts at cycle', 'cycles', 'barriers and launches, cycles', 'slowest tile', 'slowest / mean', 'moved, bytes'],
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
  if (isStatic(report.planned.plan)) return;
  const b = report.buckets;
  const made = section('spills', 'Buckets, spills and propagation', table('Buckets', ['what', 'figure'], [
    ['records in all buckets', b.records], ['blocks', b.blocks], ['blocks that spilled into another bucket', b.spilled_blocks], ['spilled, %', b.blocks ? 100 * b.spilled_blocks / b.blocks : 0],
    ['partitions that buckets travel', b.travel_partitions], ['steps of travel', b.spill_steps], ['steps that are needed at least', b.spill_steps_at_least],
    ['values in the fullest bucket', b.fullest_values], ['values it has room for', b.capacity_values], ['words in the fullest bucket', b.fullest_words], ['words it has room for', b.capacity_words],
    ['bytes to send if the pattern changes', b.pattern_bytes]]));
  const ways = report.passes.map((p) => ({pass: p.pass, planned: 0, run: 0, steps: 0, ...p.phases.filter((f) => f.phase === 'propagate').map((f) => ({planned: f.planned_cycles, run: f.compute_cycles + f.exchange_cycles, steps: f.steps}))[0]}));
  if (ways.length) made.append(table('Propagation', ['pass', 'steps of propagation', 'planned, cycles', 'run, cycles'], ways.map((w) => [w.pass, w.steps, w.planned, w.run])));
  const layouts = layoutsOf(report).filter((layout) => layout.tiles?.length);
  if (!layouts.length) return;
  const kBins = 20, bins = [...Array(kBins).keys()], names = bins.map((i) => `${100 * i / kBins}-${100 * (i + 1) / kBins}`);
  const counted = layouts.map(({tiles, passes}) => ({name: passes.join(' + '),
    data: bins.map((bin) => tiles.filter((tile) => Math.min(kBins - 1, Math.floor(tile.fill * kBins)) === bin).length)}));
  chart(made, {label: 'Buckets by how full they are, % of their room for values', height: 260,
    option: () => ({tooltip: {trigger: 'axis', confine: true}, legend: {top: 0}, grid: {left: 4, right: 12, top: 36, bottom: 8, containLabel: true},
      xAxis: {type: 'category', data: names}, yAxis: {type: 'value', splitNumber: 4, axisLabel: {formatter: brief}}, series: counted.map((c) => ({...c, type: 'bar'}))}),
    figures: () => ({headings: ['filled, %', ...counted.map((c) => `buckets of ${c.name}`)], rows: names.map((name, i) => [name, ...counted.map((c) => c.data[i])])})});
}

function checksAndOrigin(report) {
  if (report.passes.length) section('checks', 'Checks of results', table('Checks', ['pass', 'compared', 'wrong', 'largest error / bound'],
    report.passes.map((p) => [p.pass, p.check?.compared ?? 'not checked', p.check?.wrong, p.check?.largest_error_of_bound])));
  section('origin', 'How figures came about', table('Origin of figures', ['figure', 'how'], Object.entries(report.how)),
    element('h3', {}, 'Effective configuration'), table('Configuration', ['option', 'value'], Object.entries(report.configuration)));
}

function showRun(report) {
  const parts = report.host ? [hostSummary, measuredPasses, ranks, forecasts, cells, computer]
    : [summary, planAndWhy, costByPhase, runnersUp, tileMap, memory, liveness, timeline, imbalance, spills];
  for (const part of [...parts, checksAndOrigin]) part(report);
}
