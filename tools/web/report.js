'use strict';
// Draws the page from the report in #report. Every chart has a table of the same figures under it:
// the table is what a keyboard or a screen reader gets.
(() => {
  const report = JSON.parse(document.getElementById('report').textContent);
  const {problem, machine, plan} = report.planned;
  const main = document.getElementById('main');
  const isDark = matchMedia('(prefers-color-scheme: dark)');
  const charts = [];
  const number = (n) => typeof n === 'number' ? n.toLocaleString('en-US', {maximumFractionDigits: 3}) : String(n ?? '-');

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function section(id, title, ...children) {
    const made = element('section', {id, 'aria-labelledby': id + '-title'},
      element('h2', {id: id + '-title'}, title), ...children);
    main.append(made);
    return made;
  }

  function table(headings, rows) {
    const line = (cells, tag) => element('tr', {}, ...cells.map((c) => element(tag, {}, number(c))));
    return element('div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Figures'},
      element('table', {}, element('thead', {}, line(headings, 'th')),
        element('tbody', {}, ...rows.map((row) => line(row, 'td')))));
  }

  // A chart with its table. `option` is made anew when the colours change.
  function chart(into, label, option, headings, rows) {
    const place = element('div', {class: 'chart', role: 'img', 'aria-label': label});
    const figures = element('details', {}, element('summary', {}, 'Figures: ' + label),
      table(headings, rows));
    into.append(place, figures);
    const entry = {place, option};
    charts.push(entry);
    return entry;
  }

  function draw(entry) {
    if (entry.shown) entry.shown.dispose();
    entry.shown = echarts.init(entry.place, isDark.matches ? 'dark' : null, {renderer: 'canvas'});
    entry.shown.setOption({backgroundColor: 'transparent', animation: false, aria: {enabled: false}, ...entry.option()});
  }

  const card = (label, value, kind = '') => element('div', {class: 'card ' + kind}, label, element('b', {}, value));
  const shape = `${problem.size.x} outputs, ${problem.size.y} inputs, batch ${problem.size.z}`;

  function summary() {
    document.getElementById('subtitle').textContent =
      `${shape}, density ${number(problem.density)}, ${problem.data_type} on ${machine.name} (${number(machine.tiles)} tiles); ${report.source}`;
    document.title = `Cost report: ${shape}`;
    const t = report.total;
    const cards = element('div', {class: 'cards'},
      card('status', report.status, report.status),
      card('cycles (modelled)', number(t.cycles)), card('cycles (planned)', number(t.planned_cycles)),
      card('time (modelled)', number(t.seconds * 1e6) + ' µs'),
      card('moved (counted)', number(t.moved_bytes) + ' B'),
      card('fullest tile', t.fullest_tile_bytes ? number(t.fullest_tile_bytes) + ' B' : 'not built'),
      card('spilled blocks', number(report.buckets.spilled_blocks)),
      card('dense pass at peak', number(t.dense_pass_at_peak_cycles) + ' cycles'));
    section('summary', 'Summary', cards, ...report.notes.map((n) => element('p', {}, n)));
  }

  function planTable() {
    const rows = [['tiles used', plan.partition.g * plan.partition.x * plan.partition.y * plan.partition.z],
      ['cut of groups, outputs, inputs, batch', ['g', 'x', 'y', 'z'].map((d) => plan.partition[d]).join(' × ')],
      ['forward kernel', plan.fwd], ['input gradient kernel', plan.grad_a], ['weight gradient kernel', plan.grad_w],
      ['bucket', `${number(report.buckets.capacity_values)} values, ${number(report.buckets.capacity_words)} words`],
      ['seed', report.seed]];
    const made = section('plan', 'Plan and why', table(['what', 'chosen'], rows));
    const why = report.explanation;
    if (!why) return;
    made.append(element('p', {}, `Best of ${number(why.partitions)} partitions looked at. Limits: ` +
      why.limits.map((l) => `${l.limit}: ${l.gain > 0 ? 'lifting it gains ' + number(l.gain) + ' cycles' : 'does not bind'}`).join('; ') + '.'));
  }

  const passes = report.passes;
  // GradA may have a layout of its own, explained by itself.
  const layouts = () => [report.explanation, report.explanation?.backward].filter((e) => e && e.terms);

  function costByTerm() {
    const made = section('cost', 'Cost by pass and phase, planned against run');
    const names = [...new Set(passes.flatMap((p) => p.phases.map((f) => f.phase)))].concat('sync, launch');
    const bars = passes.flatMap((p) => [p.pass + ' planned', p.pass + ' run']);
    const value = (pass, name, isRun) => {
      if (name === 'sync, launch')
        return isRun ? pass.phases.reduce((sum, f) => sum + f.overhead_cycles, 0) : pass.planned_overhead_cycles;
      const phase = pass.phases.find((f) => f.phase === name);
      return !phase ? 0 : isRun ? phase.compute_cycles + phase.exchange_cycles : phase.planned_cycles;
    };
    const series = names.map((name) => ({name, type: 'bar', stack: 'cycles',
      data: passes.flatMap((p) => [value(p, name, false), value(p, name, true)])}));
    chart(made, 'cycles of each pass by phase', () => ({legend: {type: 'scroll', top: 0}, tooltip: {trigger: 'axis'},
      grid: {left: 8, right: 16, bottom: 8, containLabel: true}, xAxis: {type: 'value', name: 'cycles', nameLocation: 'middle', nameGap: 24},
      yAxis: {type: 'category', data: bars, inverse: true}, series}),
    ['pass', ...names], bars.map((bar, i) => [bar, ...series.map((s) => s.data[i])]));
    if (report.explanation)
      made.append(element('h3', {}, 'Terms of the plan'), table(['pass', 'term', 'cycles', 'share %', 'temporary bytes'],
        layouts().flatMap((e) => e.terms).map((t) => [t.pass, t.name, t.cycles, 100 * t.share, t.tempBytes])));
  }

  function runnersUp() {
    const others = layouts().flatMap((e, i) => e.runnersUp.map((o) => ({...o, layout: i ? 'GradA' : 'Fwd'})));
    if (!others.length) return;
    const made = section('runners', 'Runners-up');
    const rows = others.map((o, i) => [`${i + 1} ${o.layout} ${['g', 'x', 'y', 'z'].map((d) => o.partition[d]).join('×')}`, o.loses, o.methods]);
    chart(made, 'cycles that the next best plans lose', () => ({tooltip: {}, grid: {left: 8, right: 16, bottom: 8, containLabel: true},
      xAxis: {type: 'value', name: 'cycles lost', nameLocation: 'middle', nameGap: 24}, yAxis: {type: 'category', data: rows.map((r) => r[0]), inverse: true},
      series: [{type: 'bar', data: rows.map((r) => r[1])}]}), ['layout, cut g×x×y×z', 'cycles lost', 'kernels'], rows);
  }

  // What the figures of a tile are called.
  const tileFigures = {values: 'values held', fill: 'share of the bucket filled'};

  function tileMap() {
    const tiles = report.tiles;
    if (!tiles || !tiles.length) return;
    const made = section('tiles', 'Tiles');
    const columns = 46;  // 46 * 32 = 1472
    const rows = Math.ceil(machine.tiles / columns);
    let figure = 'values';
    const largest = () => Math.max(1e-9, ...tiles.map((t) => t[figure]));
    const buttons = element('p', {role: 'group', 'aria-label': 'Figure shown'});
    made.append(buttons);
    const entry = chart(made, 'one field a tile', () => ({
      tooltip: {formatter: (p) => `tile ${p.data[3]}: ${number(p.data[2])} ${tileFigures[figure]}`},
      grid: {left: 8, right: 8, top: 8, bottom: 56, containLabel: true},
      xAxis: {type: 'category', data: [...Array(columns).keys()], name: ''},
      yAxis: {type: 'category', data: [...Array(rows).keys()].map((r) => r * columns), inverse: true},
      visualMap: {min: Math.min(...tiles.map((t) => t[figure])), max: largest(), calculable: true, orient: 'horizontal', left: 'center', bottom: 0},
      dataZoom: [{type: 'inside'}],
      series: [{type: 'heatmap', data: tiles.map((t) => [t.tile % columns, Math.floor(t.tile / columns), t[figure], t.tile])}]}),
    ['tile', 'x', 'y', 'z', ...Object.values(tileFigures)],
    tiles.map((t) => [t.tile, t.x, t.y, t.z, t.values, t.fill]));
    for (const [key, label] of Object.entries(tileFigures)) {
      const button = element('button', {type: 'button', 'aria-pressed': String(key === figure)}, label);
      button.addEventListener('click', () => {
        figure = key;
        for (const other of buttons.children) other.setAttribute('aria-pressed', String(other === button));
        draw(entry);
      });
      buttons.append(button, ' ');
    }
  }

  function timeline() {
    const steps = passes.flatMap((p) => p.steps.map((s) => ({...s, pass: p.pass})));
    if (!steps.length) return;
    const made = section('steps', 'Steps in time');
    const names = steps.map((s, i) => `${i + 1} ${s.pass} ${s.phase}`);
    const of = (name, value) => ({name, type: 'bar', stack: 'cycles', data: steps.map(value)});
    const entry = chart(made, 'cycles of each step', () => ({legend: {top: 0}, tooltip: {trigger: 'axis'}, dataZoom: [{type: 'slider'}],
      grid: {left: 8, right: 16, bottom: 64, containLabel: true}, xAxis: {type: 'category', data: names},
      yAxis: {type: 'value', name: 'cycles'},
      series: [of('compute', (s) => s.kind === 'compute' ? s.cycles : 0), of('exchange', (s) => s.kind === 'exchange' ? s.cycles : 0),
        of('sync, launch', (s) => s.overhead_cycles)]}),
    ['step', 'kind', 'cycles', 'sync, launch cycles', 'slowest tile', 'moved bytes'],
    steps.map((s, i) => [names[i], s.kind, s.cycles, s.overhead_cycles, s.slowest_tile, s.moved_bytes]));
    const zoom = (label, start, end) => {
      const button = element('button', {type: 'button'}, label);
      button.addEventListener('click', () => entry.shown.dispatchAction({type: 'dataZoom', start, end}));
      return button;
    };
    made.insertBefore(element('p', {}, zoom('First half', 0, 50), ' ', zoom('Second half', 50, 100), ' ', zoom('All steps', 0, 100)), entry.place);
  }

  function imbalance() {
    const rows = passes.flatMap((p) => p.phases.filter((f) => f.compute_cycles > 0).map((f) =>
      [`${p.pass} ${f.phase}`, f.compute_cycles, f.mean_tile_compute_cycles, f.compute_cycles / Math.max(f.mean_tile_compute_cycles, 1e-9)]));
    if (!rows.length) return;
    const made = section('imbalance', 'Imbalance: slowest tile against the mean of all');
    chart(made, 'compute cycles, slowest tile and mean', () => ({legend: {top: 0}, tooltip: {trigger: 'axis'},
      grid: {left: 8, right: 16, bottom: 8, containLabel: true}, xAxis: {type: 'value', name: 'cycles', nameLocation: 'middle', nameGap: 24},
      yAxis: {type: 'category', data: rows.map((r) => r[0]), inverse: true},
      series: [{name: 'slowest tile', type: 'bar', data: rows.map((r) => r[1])}, {name: 'mean of all tiles', type: 'bar', data: rows.map((r) => r[2])}]}),
    ['pass and phase', 'slowest tile, cycles', 'mean, cycles', 'slowest / mean'], rows);
  }

  function memory() {
    const used = report.total.fullest_tile_bytes;
    if (!used) return;
    const made = section('memory', 'Memory of the fullest tile');
    chart(made, 'bytes used and there', () => ({tooltip: {}, grid: {left: 8, right: 32, bottom: 8, containLabel: true},
      xAxis: {type: 'value', max: Math.max(used, report.total.tile_memory_bytes)}, yAxis: {type: 'category', data: ['fullest tile']},
      series: [{type: 'bar', data: [used], markLine: {symbol: 'none', data: [{xAxis: report.total.tile_memory_bytes, name: 'capacity'}], label: {formatter: 'capacity'}}}]}),
    ['tile', 'bytes used', 'bytes there'], [['fullest', used, report.total.tile_memory_bytes]]);
  }

  function tables() {
    const b = report.buckets;
    section('spills', 'Buckets and spills', table(['what', 'figure'], Object.entries(b).map(([k, v]) => [k.replaceAll('_', ' '), v])));
    section('checks', 'Checks of results', table(['pass', 'compared', 'wrong', 'largest error / bound'],
      passes.map((p) => [p.pass, p.check?.compared ?? 'not checked', p.check?.wrong, p.check?.largest_error_of_bound])));
    section('origin', 'How figures came about', table(['figure', 'how'], Object.entries(report.how)),
      element('h3', {}, 'Effective configuration'), table(['option', 'value'], Object.entries(report.configuration)));
  }

  summary();
  planTable();
  costByTerm();
  runnersUp();
  tileMap();
  memory();
  timeline();
  imbalance();
  tables();
  document.getElementById('contents').append(element('ul', {}, ...[...main.querySelectorAll('section')].map((s) =>
    element('li', {}, element('a', {href: '#' + s.id}, s.querySelector('h2').textContent)))));
  charts.forEach(draw);
  addEventListener('resize', () => charts.forEach((c) => c.shown.resize()));
  isDark.addEventListener('change', () => charts.forEach(draw));
  addEventListener('beforeprint', () => document.querySelectorAll('details').forEach((d) => { d.open = true; }));
  window.tesseraCharts = charts;  // for tests
})();
