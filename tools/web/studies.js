// The pages of tessera sweep and tessera crossover, and the code that starts every page.
function heading(study, title) {
  document.getElementById('title').textContent = title;
  document.title = `${title}: ${study.layer}`;
  document.getElementById('subtitle').textContent = `${study.layer}; ${study.machine}; cycles are planned by the cost model`;
  if (study.status !== 'complete') main.append(element('p', {}, `Stopped early: the report is ${study.status}.`));
}

function showSweep(study) {
  heading(study, `Sweep over ${study.over}`);
  const made = section('sweep', `Cycles by ${study.over}${study.unit ? ', ' + study.unit : ''}`);
  const points = study.points, names = points.map((p) => number(p.value));
  const entry = chart(made, {label: `Planned cycles for each value of ${study.over}`, height: 380,
    option: () => ({tooltip: {trigger: 'axis', confine: true, valueFormatter: number}, grid: {left: 4, right: 16, top: 16, bottom: 8, containLabel: true},
      xAxis: {type: 'category', data: names}, yAxis: {type: 'value', splitNumber: 5, axisLabel: {formatter: brief}},
      series: [{name: 'cycles', type: 'bar', data: points.map((p) => p.cycles)}]}),
    figures: () => ({headings: [study.over + (study.unit ? ', ' + study.unit : ''), 'cycles', 'tiles used', 'temporary memory, bytes'],
      rows: points.map((p) => [p.value, p.cycles ?? 'no plan', p.tiles, p.temporary_bytes])})});
  entry.details.fill();
  entry.details.open = true;
}

function showCrossover(study) {
  heading(study, 'Sparse against dense');
  const made = section('crossover', 'The density up to which sparse costs less');
  const dense = study.dense_cycles;
  made.append(element('p', {}, dense === null ? 'The dense layer does not fit.' : `The dense layer takes ${number(dense)} cycles.`),
    table('Crossover', ['block', 'sparse wins up to density', 'cycles there'], study.blocks.map((b) => [b.block, b.crossover_density, b.cycles])));
  const points = (b) => b.curve.filter((p) => p.cycles !== null).map((p) => [p.density, p.cycles]);
  const all = study.blocks.flatMap((b) => b.curve.map((p) => p.density));
  const span = [Math.min(...all), Math.max(...all)];
  chart(made, {label: 'Planned cycles by density, and those of the dense layer', height: 420,
    option: () => ({legend: {top: 0}, tooltip: {confine: true, formatter: (p) => `${p.seriesName}<br>density ${number(p.value[0])}: ${number(p.value[1])} cycles`},
      grid: {left: 4, right: 20, top: 36, bottom: 8, containLabel: true},
      xAxis: {type: 'log', min: span[0], max: span[1], axisLabel: {formatter: number}}, yAxis: {type: 'value', scale: true, axisLabel: {formatter: brief}, splitNumber: 5},
      series: [...study.blocks.map((b) => ({name: b.block, type: 'line', symbolSize: 5, data: points(b)})),
        {name: 'dense', type: 'line', symbol: 'none', lineStyle: {type: 'dashed', width: 2}, data: dense === null ? [] : span.map((d) => [d, dense])}]}),
    figures: () => ({headings: ['block', 'density', 'cycles'], rows: study.blocks.flatMap((b) => b.curve.map((p) => [b.block, p.density, p.cycles ?? 'no plan']))})});
}

const document_ = JSON.parse(document.getElementById('report').textContent);
({sweep: showSweep, crossover: showCrossover}[document_.study] ?? showRun)(document_);
start();
