// The page of tessera network.
const kWorks = ['Fwd', 'activate', 'loss', 'hand over', 'derivative', 'GradA', 'GradW', 'update', 're-home', 'biases', 'recompute'];
const workColor = (work) => ink('c' + [0, 11, 5, 12, 10, 2, 1, 3, 6, 8, 9][kWorks.indexOf(work)]);
const layerName = (layer) => layer === 'all' ? 'all layers' : `layer ${layer}`;
// The gradients of all biases are summed up and applied together, so they belong to no single layer.
const laneOf = (one) => one.work === 'biases' ? 'all' : one.layer;
const cyclesOf = (step) => step.cycles + step.overhead_cycles;
const listed = (names) => names.join(', ') || '-';

// Sums `value(row)` of the rows by layer and by `key(row)`, one bar for each layer and one series for each key.
function byLayer(into, label, lanes, rows, {key, value, color, figures}) {
  const names = [...new Set(rows.map(key))], lane = new Map(lanes.map((name, i) => [name, i]));
  const sums = names.map(() => lanes.map(() => 0));
  for (const row of rows) sums[names.indexOf(key(row))][lane.get(laneOf(row))] += value(row);
  chart(into, {label, height: () => 30 + legendHeight(names) + 30 * lanes.length,
    option: () => lying(lanes.map(layerName), {legend: {top: 0}, series: names.map((name, i) => ({name, type: 'bar', stack: 'all', itemStyle: {color: color(name)}, data: sums[i]}))}),
    figures});
}

function networkSummary(run) {
  const learns = run.losses.length > 0, cards = [
    card('cycles (modelled)', number(run.cycles)), card('cycles (planned)', number(run.planned_cycles)), card('time (modelled), µs', number(run.microseconds)),
    card('moved between tiles, bytes', number(run.moved_bytes)),
    card('fullest tile, bytes', `${number(run.tile_bytes)} of ${number(run.tile_memory)}`),
    card('each layer a program of its own, cycles (planned)', run.layer_by_layer_fits ? number(run.layer_by_layer_cycles) : 'does not fit'),
    card('dense network, cycles (planned)', run.verdict.dense_cycles === null ? 'does not fit' : number(run.verdict.dense_cycles)),
    ...(run.verdict.dense_cycles === null ? [] : [card('dense / sparse', number(run.verdict.dense_cycles / run.verdict.cycles))])];
  if (learns) cards.push(card('loss before the first step', number(run.losses[0])));
  if (run.losses.length > 1) cards.push(card(`loss before step ${run.losses.length}`, number(run.losses.at(-1))));
  lead(run.verdict.text, 'cycles', [['this network', run.verdict.cycles], ['dense layers', run.verdict.dense_cycles ?? undefined]]);
  section('summary', 'Summary', element('div', {class: 'cards'}, ...cards), element('p', {}, `All layers stay in the memory of the tiles, and ${learns ? 'a training step' : 'the computation of the outputs'} is one program. Cycles are modelled, bytes are counted. All charts show ${run.losses.length > 1 ? 'the last step' : 'one run'}.`));
}

function networkLayers(run) {
  section('layers', 'Layers', table('Layers', ['layer', 'inputs', 'outputs', 'blocks', 'density', 'bias', 'activation', 'parts: outputs × inputs × batch', 'layouts of R'],
    run.layer_list.map((layer, i) => [i + 1, layer.inputs, layer.outputs, layer.dense ? 'dense' : blockName({rows: layer.block_rows, cols: layer.block_cols}), layer.density, layer.bias ? 'yes' : 'no', layer.activation,
      layer.dense ? '-' : `${layer.parts.x} × ${layer.parts.y} × ${layer.parts.z}`, layer.dense ? '-' : layer.layouts])));
}

function networkCost(run, lanes) {
  const made = section('cost', 'Cost by layer');
  byLayer(made, 'Cycles of each layer by work', lanes, run.work, {key: (w) => w.work, value: (w) => w.cycles, color: workColor,
    figures: () => ({headings: ['layer', 'work', 'cycles', 'planned cycles', 'share of the run, %', 'moved, bytes'],
      rows: run.work.map((w) => [w.layer, w.work, w.cycles, w.planned_cycles, 100 * w.cycles / run.cycles, w.moved_bytes])})});
  // The overhead of a step is a phase of its own, as in the reports of single layers.
  const parts = run.steps.flatMap((s) => [{...s, value: s.cycles}, {...s, phase: 'barriers and launches', value: s.overhead_cycles}]);
  const sums = new Map();
  for (const part of parts) {
    const at = [laneOf(part), part.work, part.phase].join('\n');
    sums.set(at, {...part, value: (sums.get(at)?.value ?? 0) + part.value});
  }
  byLayer(made, 'Cycles of each layer by phase of its steps', lanes, parts, {key: (p) => p.phase, value: (p) => p.value, color: colorOf,
    figures: () => ({headings: ['layer', 'work', 'phase', 'cycles'], rows: [...sums.values()].map((p) => [laneOf(p), p.work, p.phase, p.value])})});
}

// When each step begins and ends, in cycles.
function networkTimes(steps) {
  let now = 0;
  return steps.map((step) => ({...step, begins: now, ends: now += cyclesOf(step)}));
}

function networkMemory(run, steps) {
  const made = section('memory', 'Memory over the run'), {fullest_tile: tile, at_peak: peak} = run.memory;
  made.append(element('p', {}, `Tile ${tile} is the fullest one: it holds up to ${number(run.tile_bytes)} of ${number(run.tile_memory)} bytes (${number(100 * run.tile_bytes / run.tile_memory)} %). Weights, optimiser states and biases stay; results stay until their last reader.`));
  let withCapacity = false;
  const line = () => ({symbol: 'none', label: {formatter: 'memory of a tile', color: ink('ink'), fontSize: 12, position: 'insideEndTop'}, lineStyle: {color: ink('bad'), width: 2, type: 'dashed'}, data: [{yAxis: run.tile_memory}]});
  const entry = chart(made, {label: `Bytes that tile ${tile} holds, over the cycles of the run`, height: 300,
    option: () => ({tooltip: {trigger: 'axis', confine: true, formatter: ([p]) => tipOf(p.data.name, `${number(p.value[1])} bytes`)},
      grid: {left: 4, right: 24, top: 16, bottom: 8, containLabel: true}, xAxis: {type: 'value', min: 0, max: steps.at(-1).ends, splitNumber: isNarrow() ? 3 : 8, axisLabel: {formatter: brief}},
      yAxis: {type: 'value', min: 0, max: withCapacity ? Math.round(1.08 * Math.max(run.tile_memory, run.tile_bytes)) : undefined, splitNumber: 4, axisLabel: {formatter: brief, showMaxLabel: !withCapacity}},
      series: [{name: 'bytes', type: 'line', step: 'end', symbol: 'none', areaStyle: {opacity: 0.25}, lineStyle: {width: 1.5}, markLine: withCapacity ? line() : undefined,
        data: steps.map((s) => ({name: `${layerName(laneOf(s))} ${s.work}: ${s.phase}`, value: [s.begins, s.held_bytes]})).concat([{name: 'end', value: [steps.at(-1).ends, steps.at(-1).held_bytes]}])}]}),
    figures: () => ({headings: ['step', 'layer', 'work', 'phase', 'begins at cycle', `held by tile ${tile}, bytes`], rows: steps.map((s, i) => [i + 1, laneOf(s), s.work, s.phase, s.begins, s.held_bytes])})});
  made.insertBefore(choices('Scale', {used: 'what is used', all: 'up to the memory of a tile'}, 'used', (key) => { withCapacity = key === 'all'; draw(entry); }), entry.place.closest('figure'));
  const kMost = 16, shown = peak.slice(0, kMost);
  chart(made, {label: `What tile ${tile} holds when it is fullest, bytes${peak.length > kMost ? ` (the ${kMost} largest of ${peak.length} buffers)` : ''}`, height: () => 40 + 26 * shown.length,
    option: () => lying(shown.map((held) => held.buffer), {series: [{name: 'bytes', type: 'bar', data: shown.map((held) => held.bytes)}]}),
    figures: () => ({headings: ['buffer', 'bytes'], rows: peak.map((held) => [held.buffer, held.bytes])})});
}

function networkExchanges(run) {
  if (!run.exchanges.length) return;
  const made = section('exchanges', 'What moves between tiles'), kMost = 24, sums = new Map();
  made.append(element('p', {}, 'Results stay on the tiles that added them up, and the first exchange of each pass fetches its operands from there. Bytes are those that all tiles receive together; the colours are those of the work.'));
  const name = (e) => `${isNarrow() ? laneOf(e) : layerName(laneOf(e))} ${e.work}: ${e.phase}`;
  for (const e of run.exchanges) sums.set(name(e), {...e, moved_bytes: (sums.get(name(e))?.moved_bytes ?? 0) + e.moved_bytes});
  const all = [...sums.values()], least = all.map((e) => e.moved_bytes).sort((a, b) => b - a)[Math.min(kMost, all.length) - 1];
  const shown = all.filter((e) => e.moved_bytes >= least).slice(0, kMost);
  chart(made, {label: `Bytes that the exchanges of each pass move${all.length > kMost ? ` (the ${kMost} largest sums of ${all.length})` : ''}`, height: () => 40 + 26 * shown.length,
    option: () => lying(shown.map(name), {series: [{name: 'bytes', type: 'bar', data: shown.map((e) => ({value: e.moved_bytes, itemStyle: {color: workColor(e.work)}}))}]}),
    figures: () => ({headings: ['layer', 'work', 'phase', 'bytes', 'cycles', 'times', 'from', 'to'],
      rows: run.exchanges.map((e) => [laneOf(e), e.work, e.phase, e.moved_bytes, e.cycles, e.times, listed(e.from), listed(e.to)])})});
}

function networkTimeline(run, lanes, steps) {
  const made = section('steps', 'Steps in time'), end = steps.at(-1).ends, works = [...new Set(steps.map((s) => s.work))];
  const bars = (work) => steps.filter((s) => s.work === work && s.ends > s.begins).map((s) => ({
    name: `${layerName(laneOf(s))} ${s.work}: ${s.phase}`, value: [s.begins, s.ends, lanes.indexOf(laneOf(s)), s.kind]}));
  const entry = chart(made, {label: 'Each step of all layers, one after the other, in cycles', height: () => 80 + legendHeight(works) + Math.max(24, Math.min(48, 700 / lanes.length)) * lanes.length,
    option: () => ({...lying(lanes.map(layerName)), legend: {top: 0}, grid: {left: 4, right: 24, top: legendHeight(works), bottom: 52, containLabel: true},
      dataZoom: [{type: 'slider', height: 20, bottom: 8, filterMode: 'none', labelFormatter: brief}],
      tooltip: {confine: true, formatter: (p) => tipOf(p.name, `${p.value[3]}, ${number(p.value[1] - p.value[0])} cycles from ${number(p.value[0])}`)},
      xAxis: {type: 'value', min: 0, max: end, splitNumber: isNarrow() ? 3 : 8, axisLabel: {formatter: brief}},
      series: works.map((work) => ({name: work, type: 'custom', renderItem: stepBar, itemStyle: {color: workColor(work)}, encode: {x: [0, 1], y: 2}, data: bars(work)}))}),
    figures: () => ({headings: ['step', 'layer', 'work', 'phase', 'kind', 'begins at cycle', 'cycles', 'barriers and launches, cycles', 'tiles', 'slowest tile', 'moved, bytes'],
      rows: steps.map((s, i) => [i + 1, laneOf(s), s.work, s.phase, s.kind, s.begins, s.cycles, s.overhead_cycles, s.tiles, s.slowest_tile, s.moved_bytes])})});
  const loss = steps.find((s) => s.work === 'loss'), parts = {'all steps': [0, 100]};
  if (loss) Object.assign(parts, {forward: [0, 100 * loss.begins / end], 'loss and backward': [100 * loss.begins / end, 100]});
  made.insertBefore(zoomButtons(entry, parts), entry.place.closest('figure'));
}

function networkDense({verdict, tile_memory: memory}, lanes) {
  const made = section('dense', 'Beside a network of dense layers');
  const figures = {headings: ['layer', 'work', 'cycles', 'dense, cycles (planned)'], rows: verdict.work.map((w) => [w.layer, w.work, w.cycles, w.dense_cycles])};
  made.append(element('p', {}, `A dense pass fetches operands that are spread evenly over all tiles; the optimiser changes all weights; all other work is that of this network, and further hand-overs between dense layers are left out. Weights and optimiser states of the dense network take ${number(verdict.dense_tile_bytes)} of ${number(memory)} bytes on each tile.`));
  if (verdict.dense_cycles === null) { made.append(table('Cycles by layer and work', figures.headings, figures.rows)); return; }
  const sum = (key) => lanes.map((lane) => verdict.work.filter((w) => w.layer === lane).reduce((all, w) => all + w[key], 0));
  chart(made, {label: 'Cycles of each layer, sparse and dense', height: () => 60 + 40 * lanes.length,
    option: () => lying(lanes.map(layerName), {legend: {top: 0}, series: [{name: 'this network', type: 'bar', data: sum('cycles')}, {name: 'dense layers', type: 'bar', data: sum('dense_cycles')}]}),
    figures: () => figures});
}

function networkPatterns({pattern_update: update, machine}) {
  const milli = (seconds) => number(1e3 * seconds);
  section('patterns', 'New patterns for all layers', element('p', {}, `The host reads values and optimiser states from ${machine}, encodes the new patterns, and sends words, values and states.`),
    element('div', {class: 'cards'}, card('sent, bytes', number(update.upload_bytes)), card('read, bytes', number(update.download_bytes)),
      card('link, ms (modelled)', milli(update.upload_seconds + update.download_seconds)), card('encoding on this computer, ms (measured)', milli(update.host_seconds)),
      card('steps between updates for less than 5 % of the time', number(update.steps_for_5_percent))));
}

function networkLosses(losses) {
  if (losses.length < 2) return;
  chart(section('loss', 'Loss'), {label: 'Loss before each step, always of the same batch', height: 280,
    option: () => ({tooltip: {trigger: 'axis', confine: true, valueFormatter: number}, grid: {left: 4, right: 20, top: 16, bottom: 8, containLabel: true},
      xAxis: {type: 'category', data: losses.map((_, i) => i + 1)}, yAxis: {type: 'value', scale: true, axisLabel: {formatter: brief}}, series: [{name: 'loss', type: 'line', symbolSize: 5, data: losses}]}),
    figures: () => ({headings: ['step', 'loss'], rows: losses.map((loss, i) => [i + 1, loss])})});
}

function showNetwork(run) {
  const title = run.losses.length > 0 ? 'Training step of a network' : 'Outputs of a network';
  document.getElementById('title').textContent = title;
  document.title = `${title} on ${run.machine}`;
  document.getElementById('subtitle').textContent = `${run.layers} layers, batch ${number(run.batch)}, ${run.data_type}, on ${run.machine} (${number(run.tiles)} tiles); tessera ${run.version}, ${run.date}`;
  const lanes = [...new Set(run.work.map(laneOf))], steps = networkTimes(run.steps);
  networkSummary(run);
  networkLayers(run);
  networkCost(run, lanes);
  networkTimeline(run, lanes, steps);
  networkMemory(run, steps);
  networkExchanges(run);
  networkDense(run, lanes);
  networkPatterns(run);
  networkLosses(run.losses);
}
