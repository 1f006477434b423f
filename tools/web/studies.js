// The page of a study, which is a list of tables with charts, and the code that starts every page.
const scaled = (value, column) => typeof value === 'number' ? value * column.scale : value;

// Splits the rows of a table into lines: one for each value of the series columns and each figure.
// Lines that have the same values everywhere, as those of a dense layer have, become one.
function linesOf(rows, columns, {x, y, series, is_log}) {
  const titles = Object.fromEntries(columns.map((c) => [c.key, c])), lines = new Map();
  for (const row of rows)
    for (const key of y) {
      const group = series.map((s) => `${titles[s].title} ${number(row[s])}`).join(', ');
      const name = y.length === 1 && group ? group : [titles[key].title, group].filter(Boolean).join('; ');
      if (!lines.has(name)) lines.set(name, {name, key, points: []});
      if (row[key] !== null) lines.get(name).points.push([is_log ? row[x] : number(row[x]), scaled(row[key], titles[key])]);
    }
  const kept = new Map();
  for (const line of lines.values()) {
    const same = line.key + JSON.stringify(line.points);
    if (kept.has(same)) kept.get(same).name = titles[line.key].title;
    else kept.set(same, line);
  }
  return [...kept.values()];
}

function drawLines(made, chartOf, rows, columns, details) {
  const lines = linesOf(rows, columns, chartOf), level = chartOf.level;
  const column = columns.find((c) => c.key === chartOf.y[0]);
  const xs = rows.map((row) => row[chartOf.x]).filter((v) => typeof v === 'number');
  const names = [...new Set(rows.map((row) => number(row[chartOf.x])))];
  const values = lines.flatMap((line) => line.points.map((p) => p[1])).concat(level ? [scaled(level.value, column)] : []);
  const isWide = Math.max(...values) > 20 * Math.min(...values) && Math.min(...values) > 0;
  const series = lines.map((line) => ({name: line.name, type: 'line', symbolSize: 6, data: line.points,
    ...(line.key === chartOf.y[0] ? {} : {lineStyle: {type: 'dashed', width: 2}})}));
  if (level) series.push({name: level.name, type: 'line', symbol: 'none', lineStyle: {type: 'dashed', width: 2},
    data: [Math.min(...xs), Math.max(...xs)].map((v) => [v, scaled(level.value, column)])});
  const legend = series.map((s) => s.name), title = columns.find((c) => c.key === chartOf.x).title;
  return chart(made, {label: chartOf.label, height: () => 380 + legendHeight(legend),
    option: () => ({legend: {top: 0}, tooltip: {confine: true, formatter: (p) => tipOf(p.seriesName, `${title} ${number(p.value[0])}: ${number(p.value[1])}`)},
      grid: {left: 4, right: 20, top: legendHeight(legend), bottom: 8, containLabel: true},
      xAxis: chartOf.is_log ? {type: 'log', min: Math.min(...xs), max: Math.max(...xs), axisLabel: {formatter: number}} : {type: 'category', data: names},
      yAxis: {type: isWide ? 'log' : 'value', scale: isWide, axisLabel: {formatter: brief}, splitNumber: 5}, series}), ...details});
}

// Rows without any length are in the table only.
function drawBars(made, chartOf, all, columns, details) {
  const rows = all.filter((row) => chartOf.y.some((key) => row[key] !== 0));
  const names = rows.map((row) => number(row[chartOf.x])), shown = chartOf.y.map((key) => columns.find((c) => c.key === key));
  const legend = shown.map((c) => c.title);
  return chart(made, {label: chartOf.label, height: () => 40 + legendHeight(legend) + (16 + 18 * shown.length) * names.length,
    option: () => lying(names, {legend: {top: 0}, series: shown.map((c) => ({name: c.title, type: 'bar', data: rows.map((row) => scaled(row[c.key], c) ?? '-')}))}), ...details});
}

function showStudy(study) {
  const {title, subtitle, date, version, tables} = study.page;
  document.getElementById('title').textContent = title;
  document.title = `${title}: ${subtitle}`;
  document.getElementById('subtitle').textContent = `${subtitle}; tessera ${version}, ${date}`;
  if (study.status !== 'complete') main.append(element('p', {}, `Stopped early: the report is ${study.status}.`));
  if (study.verdict) main.append(element('p', {class: 'verdict'}, `Verdict: ${study.verdict}.`));
  for (const {table: key, title: heading, note, columns, chart: chartOf} of tables) {
    const rows = study[key] ?? [], made = section(key, heading);
    if (note) made.append(element('p', {}, note));
    const used = columns.filter((c) => rows.some((row) => row[c.key] !== null && row[c.key] !== ''));
    const figures = {headings: used.map((c) => c.title), rows: rows.map((row) => used.map((c) => scaled(row[c.key], c)))};
    if (!chartOf) {
      made.append(table(heading, figures.headings, figures.rows));
      continue;
    }
    const entry = (chartOf.kind === 'bars' ? drawBars : drawLines)(made, chartOf, rows, columns, {figures: () => figures});
    entry.details.fill();
    entry.details.open = true;
  }
}

const document_ = JSON.parse(document.getElementById('report').textContent);
const show = document_.study === 'train' ? showTraining : document_.study === 'network' ? showNetwork : document_.study ? showStudy : showRun;
show(document_);
start();
