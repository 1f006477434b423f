// The parts of a report that show every tile: the map, memory, the intervals of buffers.
const tileFigures = {
  compute_cycles: 'compute, cycles', exchange_cycles: 'exchange, cycles', sent_bytes: 'sent, bytes',
  received_bytes: 'received, bytes', memory_bytes: 'memory, bytes', values: 'bucket, values', fill: 'bucket filled, %',
};
const kHeat = ['#440154', '#414487', '#2a788e', '#22a884', '#7ad151', '#fde725'];

// Handles the keys of the map: arrows move by a tile, Page keys by five rows, Home and End to the
// ends; + - 0 zoom.
function mapKeys(place, state, tiles, {move, zoom}) {
  const steps = () => ({ArrowLeft: -1, ArrowRight: 1, ArrowUp: -state.columns, ArrowDown: state.columns,
    PageUp: -5 * state.columns, PageDown: 5 * state.columns, Home: -tiles, End: tiles});
  place.addEventListener('keydown', (event) => {
    const by = steps()[event.key];
    if (by !== undefined) move(Math.min(tiles - 1, Math.max(0, state.tile + by)));
    else if ('+-=0'.includes(event.key)) zoom({'+': 0.5, '=': 0.5, '-': 2, 0: 1e9}[event.key]);
    else return;
    event.preventDefault();
  });
}

function tileMap(report) {
  const passes = report.passes.filter((p) => p.tiles);
  // The buckets of the layout that runs the pass shown; without passes, those of Fwd.
  const layouts = layoutsOf(report);
  const bucketsOf = (pass) => layouts.find((layout) => layout.passes.includes(pass))?.tiles ?? [];
  const tiles = report.planned.machine.tiles;
  if (!passes.length && !bucketsOf('Fwd').length) return;
  const made = section('tiles', 'Tiles');
  const figures = Object.keys(tileFigures).filter((f) => f === 'values' || f === 'fill' ? bucketsOf('Fwd').length : passes.length);
  const state = {pass: 0, figure: figures[0], tile: 0, columns: 1, span: 1};
  const bucket = (tile, key) => bucketsOf(passes[state.pass]?.pass ?? 'Fwd')[tile]?.[key] ?? null;
  const value = (figure, tile) => figure === 'values' ? bucket(tile, 'values')
    : figure === 'fill' ? (bucket(tile, 'fill') === null ? null : 100 * bucket(tile, 'fill')) : passes[state.pass].tiles[figure][tile];
  const said = element('p', {class: 'chosen', 'aria-live': 'polite'});
  let entry;
  const say = () => {
    const [x, y, z] = ['x', 'y', 'z'].map((axis) => bucket(state.tile, axis));
    said.textContent = `Tile ${state.tile}` + (x === null ? (isStatic(report.planned.plan) ? '' : ' (no bucket)') : ` (${report.planned.problem.size.g > 1 ? `group ${bucket(state.tile, 'g')}, ` : ''}x ${x}, y ${y}, z ${z})`) +
      (passes.length ? `, ${passes[state.pass].pass}` : '') + ': ' +
      figures.map((f) => `${tileFigures[f].replace(',', '')} ${number(value(f, state.tile))}`).join('; ');
  };
  const select = (tile) => {
    entry.shown.dispatchAction({type: 'unselect', seriesIndex: 0, dataIndex: state.tile});
    state.tile = tile;
    entry.shown.dispatchAction({type: 'select', seriesIndex: 0, dataIndex: tile});
    say();
  };
  const zoom = (factor) => {
    const rows = Math.ceil(tiles / state.columns);
    state.span = Math.min(1, Math.max(0.1, state.span * factor));
    const part = (at, all) => {
      const start = Math.min(100 - 100 * state.span, Math.max(0, 100 * (at + 0.5) / all - 50 * state.span));
      return {start, end: start + 100 * state.span};
    };
    const column = state.tile % state.columns, row = Math.floor(state.tile / state.columns);
    entry.shown.dispatchAction({type: 'dataZoom', dataZoomIndex: 0, ...part(column, state.columns)});
    entry.shown.dispatchAction({type: 'dataZoom', dataZoomIndex: 1, ...part(row, rows)});
  };
  const show = () => { draw(entry); entry.details.refresh(); say(); };
  if (passes.length > 1)
    made.append(choices('Pass', Object.fromEntries(passes.map((p, i) => [i, p.pass])), '0', (key) => { state.pass = Number(key); show(); }));
  made.append(choices('Figure', Object.fromEntries(figures.map((f) => [f, tileFigures[f]])), state.figure, (key) => { state.figure = key; show(); }));
  const slowest = element('button', {type: 'button'}, 'Most');
  slowest.addEventListener('click', () => {
    const all = [...Array(tiles).keys()].map((t) => value(state.figure, t) ?? -1);
    select(all.indexOf(Math.max(...all)));
  });
  const zooms = [['Closer', 0.5], ['All', 1e9]].map(([name, factor]) => {
    const button = element('button', {type: 'button'}, name);
    button.addEventListener('click', () => zoom(factor));
    return button;
  });
  made.append(element('div', {class: 'buttons', role: 'group', 'aria-label': 'Tile chosen'}, element('span', {}, 'Go to'), slowest, ...zooms));

  const option = () => {
    state.columns = Math.max(1, Math.ceil(Math.sqrt(tiles * (isNarrow() ? 32 / 46 : 46 / 32))));
    state.span = 1;
    const rows = Math.ceil(tiles / state.columns);
    const cells = [...Array(tiles).keys()].map((t) => ({name: `tile ${t}`, value: [t % state.columns, Math.floor(t / state.columns), value(state.figure, t) ?? '-']}));
    const known = cells.map((c) => c.value[2]).filter((v) => v !== '-');
    const low = Math.min(...known), high = Math.max(...known, low + 1e-9);
    const unit = tileFigures[state.figure];
    return {
      tooltip: {confine: true, formatter: (p) => tipOf(`tile ${p.dataIndex}`, `${unit}: ${number(p.value[2])}`)},
      grid: {left: 4, right: 8, top: 8, bottom: 52, containLabel: true},
      xAxis: {type: 'category', data: [...Array(state.columns).keys()]},
      yAxis: {type: 'category', data: [...Array(rows).keys()].map((r) => r * state.columns), inverse: true, axisLabel: {interval: Math.ceil(18 * rows / (entry.height() - 60)) - 1}},
      visualMap: {min: low, max: high, orient: 'horizontal', left: 'center', bottom: 0, calculable: false, itemHeight: isNarrow() ? 120 : 300,
        text: [brief(high), brief(low)], inRange: {color: kHeat}},
      dataZoom: [{type: 'inside', xAxisIndex: 0, zoomOnMouseWheel: 'ctrl'}, {type: 'inside', yAxisIndex: 0, zoomOnMouseWheel: 'ctrl'}],
      series: [{type: 'heatmap', data: cells, selectedMode: 'single', emphasis: {itemStyle: {borderColor: ink('ink'), borderWidth: 1}},
        select: {itemStyle: {borderColor: '#ff2d20', borderWidth: 3}}}],
    };
  };
  entry = chart(made, {label: 'Tile map: a field for each tile, by number from left to right', height: () => isNarrow() ? 520 : 560, option,
    figures: () => ({headings: ['tile', 'x', 'y', 'z', ...figures.map((f) => tileFigures[f])],
      rows: [...Array(tiles).keys()].map((t) => [t, bucket(t, 'x'), bucket(t, 'y'), bucket(t, 'z'), ...figures.map((f) => value(f, t))])})});
  entry.place.setAttribute('role', 'application');
  entry.place.setAttribute('tabindex', '0');
  entry.place.setAttribute('aria-label', 'Tile map. Arrow keys move from tile to tile, Page keys by five rows, Home and End to the ends; plus, minus and 0 zoom. The line below says what the chosen tile did.');
  mapKeys(entry.place, state, tiles, {move: select, zoom});
  entry.drawn = (shown) => {
    shown.dispatchAction({type: 'select', seriesIndex: 0, dataIndex: state.tile});
    shown.on('click', (p) => select(p.dataIndex));
  };
  entry.place.closest('figure').before(said);
  say();
}

function memory(report) {
  const passes = report.passes.filter((p) => p.tiles);
  const there = report.total.tile_memory_bytes;
  const used = report.total.fullest_tile_bytes;
  if (!used) return;
  const made = section('memory', 'Memory of each tile');
  made.append(element('p', {}, `The fullest tile takes ${number(used)} of ${number(there)} bytes (${number(100 * used / there)} %).`));
  if (!passes.length) return;
  let withCapacity = false, entry;
  made.append(choices('Scale', {all: 'up to the capacity', used: 'what is used'}, 'used', (key) => { withCapacity = key === 'all'; draw(entry); }));
  const line = {symbol: 'none', label: {formatter: 'capacity', color: ink('ink'), fontSize: 12, position: 'insideEndTop'},
    lineStyle: {color: ink('bad'), width: 2, type: 'dashed'}, data: [{yAxis: there}]};
  entry = chart(made, {label: 'Bytes that each tile holds at most, by pass, and what it has', height: 300,
    option: () => ({
      legend: {top: 0}, tooltip: {trigger: 'axis', confine: true, valueFormatter: number}, grid: {left: 4, right: 12, top: 36, bottom: 56, containLabel: true},
      dataZoom: [{type: 'slider', height: 18, bottom: 8}],
      xAxis: {type: 'category', data: passes[0].tiles.memory_bytes.map((_, t) => t)},
      yAxis: {type: 'value', max: withCapacity ? Math.round(1.08 * Math.max(there, used)) : undefined, splitNumber: 4, axisLabel: {formatter: brief, showMaxLabel: !withCapacity}},
      series: passes.map((p, i) => ({name: p.pass, type: 'line', step: 'middle', symbol: 'none', lineStyle: {width: 1.5}, data: p.tiles.memory_bytes,
        markLine: i === 0 && withCapacity ? {...line, label: {...line.label, color: ink('ink')}} : undefined})),
    }),
    figures: () => ({headings: ['tile', ...passes.map((p) => p.pass + ', bytes'), 'capacity, bytes'],
      rows: passes[0].tiles.memory_bytes.map((_, t) => [t, ...passes.map((p) => p.tiles.memory_bytes[t]), there])})});
}

// Draws a rectangle from `from` to `to`, both included, on a category axis in the row of a name.
function lifeBar(params, api) {
  const first = api.coord([api.value(0), api.value(2)]), last = api.coord([api.value(1), api.value(2)]);
  const [width, height] = api.size([1, 1]);
  return {type: 'rect', style: api.style(),
    shape: {x: first[0] - width / 2 + 1, y: first[1] - 0.35 * height, width: last[0] - first[0] + width - 2, height: 0.7 * height}};
}

function liveness(report) {
  const passes = report.passes.filter((p) => p.tiles);
  if (!passes.length) return;
  const made = section('liveness', 'Lives of buffers over the program');
  let pass = passes[0];
  const entries = [];
  const peak = openTable('what the fullest tile holds at its peak', () => ({headings: ['buffer', 'bytes'],
    rows: pass.tiles.memory.at_peak.map((held) => [held.buffer, held.bytes])}));
  const show = () => {
    entries.forEach((e) => { draw(e); e.details.refresh(); });
    peak.refresh();
  };
  if (passes.length > 1)
    made.append(choices('Pass', Object.fromEntries(passes.map((p, i) => [i, p.pass])), '0', (key) => { pass = passes[key]; show(); }));
  const phases = () => pass.tiles.phases.map((name, i) => isNarrow() ? String(i + 1) : `${i + 1} ${name}`);
  const axis = () => ({type: 'category', data: phases(), axisLabel: {interval: 0, width: isNarrow() ? 24 : 110, overflow: 'break', lineHeight: 15, hideOverlap: false}});
  entries.push(chart(made, {label: 'From which phase to which each buffer lives', height: () => 60 + 24 * pass.tiles.buffers.length,
    option: () => ({
      ...lying(pass.tiles.buffers.map((b) => b.buffer), {xAxis: axis()}),
      tooltip: {confine: true, formatter: (p) => tipOf(p.name, `${number(p.value[3])} bytes at most`)},
      series: [{type: 'custom', renderItem: lifeBar, encode: {x: [0, 1], y: 2},
        data: pass.tiles.buffers.map((b, i) => ({name: b.buffer, value: [b.first_phase, b.last_phase, i, b.largest_bytes], itemStyle: {color: ink(b.resident ? 'c8' : 'c0')}}))}],
    }),
    figures: () => ({headings: ['buffer', 'largest, bytes', 'from phase', 'to phase', 'stays'],
      rows: pass.tiles.buffers.map((b) => [b.buffer, b.largest_bytes, `${b.first_phase + 1} ${pass.tiles.phases[b.first_phase]}`,
        `${b.last_phase + 1} ${pass.tiles.phases[b.last_phase]}`, b.resident ? 'resident' : 'no'])})}));
  entries.push(chart(made, {label: 'What the fullest tile holds in each phase, bytes', height: 280,
    option: () => ({tooltip: {trigger: 'axis', confine: true, valueFormatter: number}, grid: {left: 4, right: 12, top: 16, bottom: 8, containLabel: true},
      xAxis: axis(), yAxis: {type: 'value', splitNumber: 4, axisLabel: {formatter: brief}}, series: [{name: 'bytes', type: 'bar', data: pass.tiles.memory.fullest_tile_bytes}]}),
    figures: () => ({headings: ['phase', `tile ${pass.tiles.memory.fullest_tile}, bytes`],
      rows: pass.tiles.memory.fullest_tile_bytes.map((bytes, i) => [`${i + 1} ${pass.tiles.phases[i] ?? ''}`, bytes])})}));
  made.append(peak);
}
