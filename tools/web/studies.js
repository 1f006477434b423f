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
      if (!lines.has(name)) lines.set(name, {name, key, group, points: []});
      if (row[key] !== null) lines.get(name).points.push([is_log ? row[x] : number(row[x]), scaled(row[key], titles[key])]);
    }
  const kept = new Map();
  for (const line of lines.values()) {
    const same = line.key + JSON.stringify(line.points);
    if (kept.has(same)) Object.assign(kept.get(same), {name: titles[line.key].title, group: titles[line.key].title});
    else kept.set(same, line);
  }
  return [...kept.values()];
}

// Marks where a line passes the height of another, between two points on logarithmic axes.
function crossings(points, height) {
  const found = [];
  for (let i = 1; i < points.length; ++i) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
    if ((y0 < height) === (y1 < height) || !(x0 > 0 && y0 > 0 && y1 > 0)) continue;
    const part = Math.log(height / y0) / Math.log(y1 / y0);
    found.push({coord: [x0 * (x1 / x0) ** part, height]});
  }
  return {symbol: 'circle', symbolSize: 12, data: found, label: {show: false}, itemStyle: {borderColor: ink('ink'), borderWidth: 2}};
}

// What a line is of, apart from its kind: patterns that may change and patterns that stay have the colour of their blocks.
const colourOf = (line, chartOf) => chartOf.series.length ? line.group.replace(/ static$/, '') : line.key;
const isDashed = (line, chartOf) => line.group.endsWith(' static') || (line.key !== chartOf.y[0] && chartOf.series.length > 0);

function drawLines(made, chartOf, rows, columns, details) {
  const lines = linesOf(rows, columns, chartOf), level = chartOf.level;
  const column = columns.find((c) => c.key === chartOf.y[0]);
  const xs = rows.map((row) => row[chartOf.x]).filter((v) => typeof v === 'number');
  const names = [...new Set(rows.map((row) => number(row[chartOf.x])))];
  const values = lines.flatMap((line) => line.points.map((p) => p[1])).concat(level ? [scaled(level.value, column)] : []);
  const isWide = Math.max(...values) > 20 * Math.min(...values) && Math.min(...values) > 0;
  const height = level && scaled(level.value, column), colours = [...new Set(lines.map((line) => colourOf(line, chartOf)))];
  const series = () => {
    const shown = lines.map((line) => ({name: line.name, type: 'line', symbolSize: 6, data: line.points,
      color: ink('c' + colours.indexOf(colourOf(line, chartOf)) % 15), lineStyle: {type: isDashed(line, chartOf) ? 'dashed' : 'solid', width: 2},
      ...(level && chartOf.is_log ? {markPoint: crossings(line.points, height)} : {})}));
    if (level) shown.push({name: level.name, type: 'line', symbol: 'none', color: ink('ink'), lineStyle: {type: 'dotted', width: 2},
      data: [Math.min(...xs), Math.max(...xs)].map((v) => [v, height])});
    return shown;
  };
  const legend = lines.map((line) => line.name).concat(level ? [level.name] : []), title = columns.find((c) => c.key === chartOf.x).title;
  return chart(made, {label: chartOf.label, height: () => 380 + legendHeight(legend),
    option: () => ({legend: {top: 0}, tooltip: {confine: true, formatter: (p) => tipOf(p.seriesName, `${title} ${number(p.value[0])}: ${number(p.value[1])}`)},
      grid: {left: 4, right: 20, top: legendHeight(legend), bottom: 8, containLabel: true},
      xAxis: chartOf.is_log ? {type: 'log', min: Math.min(...xs), max: Math.max(...xs), axisLabel: {formatter: number}} : {type: 'category', data: names},
      yAxis: {type: isWide ? 'log' : 'value', scale: isWide, axisLabel: {formatter: brief}, splitNumber: 5}, series: series()}), ...details});
}

// A map of dense / sparse where two figures vary: above 1, sparse costs less.
function drawHeat(made, chartOf, rows, columns) {
  const [x, y] = [chartOf.x, chartOf.series[0]], names = (key) => [...new Set(rows.map((row) => number(row[key])))];
  const across = names(x), up = names(y), title = (key) => columns.find((c) => c.key === key).title;
  const cells = rows.filter((row) => row.dense_over_sparse !== null).map((row) => [across.indexOf(number(row[x])), up.indexOf(number(row[y])), row.dense_over_sparse]);
  if (!cells.length) return;
  chart(made, {label: `Dense / sparse by ${title(x)} and ${title(y)}; sparse costs less above 1`, height: () => 110 + Math.max(34, Math.min(60, 400 / up.length)) * up.length,
    option: () => ({tooltip: {confine: true, formatter: (p) => tipOf(`${title(x)} ${across[p.value[0]]}, ${title(y)} ${up[p.value[1]]}`, `dense / sparse ${number(p.value[2])}`)},
      grid: {left: 4, right: 8, top: 8, bottom: 56, containLabel: true}, xAxis: {type: 'category', data: across, name: ''}, yAxis: {type: 'category', data: up},
      visualMap: {type: 'piecewise', orient: 'horizontal', left: 'center', bottom: 0, pieces: [{lt: 0.95, color: ink('c1'), label: 'dense'}, {gte: 0.95, lt: 1.05, color: ink('c13'), label: 'about equal'}, {gte: 1.05, color: ink('c0'), label: 'sparse'}]},
      series: [{type: 'heatmap', data: cells, label: {show: up.length * across.length <= 120, formatter: (p) => number(p.value[2]), color: ink('ink'), textBorderColor: ink('paper'), textBorderWidth: 3}}]}),
    figures: () => ({headings: [title(x), title(y), 'dense / sparse'], rows: rows.map((row) => [row[x], row[y], row.dense_over_sparse])})});
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
  if (study.verdict) lead(study.verdict, '', []);
  for (const {table: key, title: heading, note, columns, chart: chartOf} of tables) {
    const rows = study[key] ?? [], made = section(key, heading);
    if (note) made.append(element('p', {}, note));
    if (!rows.length && note) continue;
    const used = columns.filter((c) => rows.some((row) => row[c.key] !== null && row[c.key] !== ''));
    const figures = {headings: used.map((c) => c.title), rows: rows.map((row) => used.map((c) => scaled(row[c.key], c)))};
    if (!chartOf) {
      made.append(table(heading, figures.headings, figures.rows));
      continue;
    }
    const entry = (chartOf.kind === 'bars' ? drawBars : drawLines)(made, chartOf, rows, columns, {figures: () => figures});
    if (chartOf.series.length === 1 && columns.some((c) => c.key === 'dense_over_sparse')) drawHeat(made, chartOf, rows, columns);
    entry.details.fill();
    entry.details.open = true;
  }
}

const document_ = JSON.parse(document.getElementById('report').textContent);
const show = document_.study === 'train' ? showTraining : document_.study === 'network' ? showNetwork : document_.study ? showStudy : showRun;
show(document_);
start();
