// The page of tessera train.
const kActivityNames = {batch: 'batches', forward: 'forward', loss: 'loss', grad_w: 'weight gradients', grad_a: 'input gradients', optimiser: 'optimiser',
  rewire: 'rewires', evaluation: 'test set'};
const asPercent = (share) => number(100 * share) + ' %';

// One line for each run, training and test, over epochs or seconds.
function curves(into, runs, {label, key, testKey, scale, unit}) {
  for (const over of ['epoch', 'seconds'])
    chart(into, {label: `${label} over ${over === 'epoch' ? 'epochs' : 'seconds'}`, height: 320,
      option: () => ({legend: {top: 0}, tooltip: {trigger: 'axis', confine: true, valueFormatter: number},
        grid: {left: 4, right: 20, top: 48, bottom: 8, containLabel: true},
        xAxis: {type: 'value', splitNumber: isNarrow() ? 3 : 6, axisLabel: {formatter: brief}},
        yAxis: {type: 'value', scale: true, axisLabel: {formatter: (v) => brief(v) + unit}},
        series: Object.entries(runs).flatMap(([name, run]) => [[`${name}, training`, key, 'dashed'], [`${name}, test`, testKey, 'solid']].map(([series, field, type]) =>
          ({name: series, type: 'line', symbolSize: 4, lineStyle: {type}, data: run.epochs.map((e) => [e[over], scale * e[field]])})))}),
      figures: () => ({headings: ['run', 'epoch', 'seconds', `training${unit}`, `test${unit}`],
        rows: Object.entries(runs).flatMap(([name, run]) => run.epochs.map((e) => [name, e.epoch, e.seconds, scale * e[key], scale * e[testKey]]))})});
}

function timeChart(into, runs) {
  const names = Object.keys(kActivityNames), shown = Object.values(kActivityNames);
  chart(into, {label: 'Seconds by activity', height: 360,
    option: () => lying(shown, {legend: {top: 0}, series: Object.entries(runs).map(([name, run]) => ({name, type: 'bar', data: names.map((n) => run.seconds[n])}))}),
    figures: () => ({headings: ['activity', ...Object.keys(runs)], rows: names.map((n) => [kActivityNames[n], ...Object.values(runs).map((run) => run.seconds[n])])})});
}

function rewireChart(into, rewires) {
  chart(into, {label: 'Share of blocks that a rewire drops, and share of all weights ever active, in %', height: 320,
    option: () => ({legend: {top: 0}, tooltip: {trigger: 'axis', confine: true, valueFormatter: number}, grid: {left: 4, right: 20, top: 48, bottom: 8, containLabel: true},
      xAxis: {type: 'value', splitNumber: isNarrow() ? 3 : 6, axisLabel: {formatter: brief}}, yAxis: {type: 'value'},
      series: [{name: 'dropped', type: 'line', symbol: 'none', data: rewires.map((r) => [r.step, 100 * r.fraction])},
        {name: 'ever active', type: 'line', symbol: 'none', data: rewires.map((r) => [r.step, 100 * r.ever_active])}]}),
    figures: () => ({headings: ['step', 'share dropped, %', 'blocks moved', 'ever active, %', 'seconds'],
      rows: rewires.map((r) => [r.step, 100 * r.fraction, r.moved, 100 * r.ever_active, r.seconds])})});
}

// The inputs as a picture, as square as their number allows; the slider chooses the rewire.
function inputMap(into, rewires) {
  const inputs = rewires[0].per_input.length;
  let wide = Math.ceil(Math.sqrt(inputs));
  while (inputs % wide !== 0) ++wide;
  const high = inputs / wide, most = rewires.reduce((all, r) => Math.max(all, ...r.per_input), 1);
  let at = rewires.length - 1;
  const text = () => at === 0 ? 'first pattern' : `after the rewire of step ${number(rewires[at].step)}`;
  const slider = element('input', {type: 'range', min: '0', max: String(at), value: String(at), id: 'rewire', 'aria-label': 'Rewire shown'});
  const shown = element('output', {for: 'rewire'}, text());
  into.append(element('div', {class: 'buttons'}, element('label', {for: 'rewire'}, 'Rewire'), slider, shown));
  const entry = chart(into, {label: 'Stored weights of the first layer for each input', height: () => Math.min(520, main.clientWidth) * high / wide + 60,
    option: () => ({tooltip: {confine: true, formatter: (p) => tipOf(`row ${p.value[1]}, column ${p.value[0]}: ${number(p.value[2])} weights`)},
      grid: {left: 4, right: Math.max(4, main.clientWidth - 520), top: 4, bottom: 52},
      xAxis: {type: 'category', data: [...Array(wide).keys()], show: false}, yAxis: {type: 'category', data: [...Array(high).keys()], inverse: true, show: false},
      visualMap: {min: 0, max: most, text: [number(most) + ' weights', '0'], calculable: false, orient: 'horizontal', left: 4, bottom: 0, inRange: {color: [ink('soft'), ink('c0')]}},
      series: [{type: 'heatmap', data: rewires[at].per_input.map((count, i) => [i % wide, Math.floor(i / wide), count])}]}),
    figures: () => ({headings: ['row', 'column', 'weights'], rows: rewires[at].per_input.map((count, i) => [Math.floor(i / wide), i % wide, count])})});
  slider.addEventListener('input', () => {
    at = Number(slider.value);
    shown.textContent = text();
    draw(entry);
    entry.details.refresh();
  });
}

// The step of all layers on a modelled machine, and what a rewire costs beside it.
function machineStep(step) {
  const milli = (seconds) => number(1e3 * seconds), rows = step.passes.map((p) => [p.layer, p.pass, p.cycles, p.dense_cycles]);
  rows.push(...step.optimisers.map((o) => [o.layer, 'optimiser', o.cycles, o.dense_cycles]));
  const made = section('machine', `The last step on ${step.name}`, element('p', {class: 'verdict'}, `Verdict: ${step.verdict.text}.`));
  const {rewire} = step, cards = [card('a step, cycles (modelled)', number(step.cycles)), card('a step, ms (modelled)', milli(step.seconds))];
  if (rewire) cards.push(card('sent for a rewire, bytes', number(rewire.upload_bytes)), card('read for a rewire, bytes', number(rewire.download_bytes)),
    card('link for a rewire, ms (modelled)', milli(rewire.upload_seconds + rewire.download_seconds)), card('this computer for a rewire, ms (measured)', milli(rewire.host_seconds)),
    card('steps between rewires for less than 5 % of the time', number(rewire.steps_for_5_percent)),
    card('steps between rewires to beat dense', rewire.steps_to_beat_dense === null ? 'never' : number(rewire.steps_to_beat_dense)));
  made.append(element('div', {class: 'cards'}, ...cards), table('Cycles by layer and pass', ['layer', 'pass', 'cycles', 'dense plan'], rows));
}

function showTraining(study) {
  const title = `Training ${study.layers.join('-')}, ${study.method}`;
  document.getElementById('title').textContent = title;
  document.title = title;
  const described = study.distribution === null ? 'network of a file'
    : `density ${number(study.density)}, ${study.distribution}, blocks of ${study.block}`;
  document.getElementById('subtitle').textContent = `${described}, batch ${study.batch}, seed ${study.seed}; seconds are measured`;
  if (study.status !== 'complete') main.append(element('p', {}, `Stopped early: the report is ${study.status}.`));
  const runs = {[study.method]: study.sparse, ...(study.dense ? {'all weights': study.dense} : {})};
  const summary = section('summary', 'Summary');
  const cards = Object.entries(runs).filter(([, run]) => run.epochs.length > 0).flatMap(([name, run]) =>
    [card(`test accuracy, ${name}`, asPercent(run.epochs.at(-1).test_accuracy)), card(`seconds, ${name}`, number(run.epochs.at(-1).seconds))]);
  summary.append(element('div', {class: 'cards'}, ...cards), ...study.notes.map((note) => element('p', {}, note)));
  curves(section('accuracy', 'Accuracy'), runs, {label: 'Accuracy in %', key: 'accuracy', testKey: 'test_accuracy', scale: 100, unit: ' %'});
  curves(section('loss', 'Loss'), runs, {label: 'Loss', key: 'loss', testKey: 'test_loss', scale: 1, unit: ''});
  timeChart(section('time', 'Time'), runs);
  if (study.step_on_machine) machineStep(study.step_on_machine);
  const made = section('pattern', 'Pattern');
  if (study.sparse.rewires.length > 1) rewireChart(made, study.sparse.rewires);
  inputMap(made, study.sparse.rewires);
}
