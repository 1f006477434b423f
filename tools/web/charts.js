'use strict';
// The elements, tables and charts of every page. Under each chart is a table of the same figures, for
// keyboards and screen readers.
const main = document.getElementById('main');
const charts = [];
const isNarrow = () => main.clientWidth < 640;
// Whole numbers are shown in full, all others with three digits.
const digits = (n) => Number.isInteger(n) ? {} : Math.abs(n) < 100 ? {maximumSignificantDigits: 3} : {maximumFractionDigits: 0};
const number = (n) => typeof n === 'number' ? n.toLocaleString('en-US', digits(n)) : String(n ?? '-');
// Formats a number for an axis: 12,500 -> 12.5K.
const brief = (n) => n.toLocaleString('en-US', {notation: 'compact', maximumSignificantDigits: 3});
// A chart takes the text of a tooltip for HTML, so what a report says must not be read as tags.
const tipOf = (...texts) => texts.map((t) => String(t).replaceAll(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)).join('<br>');

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function section(id, title, ...children) {
  const made = element('section', {id, 'aria-labelledby': id + '-title'}, element('h2', {id: id + '-title'}, title), ...children);
  main.append(made);
  return made;
}

const card = (label, value, kind = '') => element('div', {class: 'card ' + kind}, label, element('b', {}, value));

function table(label, headings, rows) {
  const cell = (value, tag, column) => {
    const isWords = tag === 'td' && typeof value === 'string' && value.length > 24;
    return element(tag, isWords ? {class: 'words'} : tag === 'th' ? {scope: 'col'} : {}, number(value));
  };
  const line = (cells, tag) => element('tr', {}, ...cells.map((value, column) => cell(value, tag, column)));
  return element('div', {class: 'table', tabindex: '0', role: 'region', 'aria-label': label},
    element('table', {}, element('thead', {}, line(headings, 'th')), element('tbody', {}, ...rows.map((row) => line(row, 'td')))));
}

// A table that opens. It is built when it is first opened, because a thousand rows for each of ten
// charts are slow. `figures()` returns {headings, rows}.
function openTable(label, figures) {
  const details = element('details', {class: 'figures'}, element('summary', {}, 'Figures: ' + label));
  const fill = () => {
    const {headings, rows} = figures();
    details.querySelector('.table')?.remove();
    details.append(table('Figures: ' + label, headings, rows));
  };
  details.refresh = () => { if (details.open) fill(); };
  details.isLong = () => figures().rows.length > 80;
  details.addEventListener('toggle', () => { if (details.open && !details.querySelector('.table')) fill(); });
  details.fill = fill;
  return details;
}

// {label, height, option(), figures()}: `option` is called again when width or colours change.
function chart(into, {label, height = 320, option, figures}) {
  const place = element('div', {class: 'chart', role: 'img', 'aria-label': label});
  const details = openTable(label, figures);
  into.append(element('figure', {}, element('figcaption', {}, label), place, details));
  const entry = {place, label, option, details, height: typeof height === 'function' ? height : () => height};
  charts.push(entry);
  return entry;
}

const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const palette = () => [...Array(15).keys()].map((i) => ink('c' + i));

// The terms of the cost model, with one colour for each term in all charts. The phases of a run have the same names, but for
// two that have several terms: reduce and arrange. Four phases that only networks have share the colour of terms that only plans have.
const kColors = [['multiply'], ['exchange operands'], ['propagate'], ['reduce sums', 'reduce'], ['cast sums'],
  ['control'], ['re-home values'], ['arrange operands', 'arrange'], ['barriers and launches'], ['transpose values', 'transpose operand'],
  ['rearrange operands'], ['exchange along z', 'hand over'], ['exchange sums', 'activate'], ['room for sums', 'loss'], ['arrange result', 'update']];
const colorOf = (name) => ink('c' + kColors.findIndex((names) => names.includes(name)));

function theme() {
  const text = {color: ink('ink'), fontSize: 12, fontFamily: 'system-ui, sans-serif'};
  const axis = {
    axisLine: {lineStyle: {color: ink('line')}}, axisTick: {lineStyle: {color: ink('line')}}, splitLine: {lineStyle: {color: ink('line')}},
    axisLabel: {...text, hideOverlap: true}, nameTextStyle: text,
  };
  return {
    color: palette(), backgroundColor: 'transparent', textStyle: text,
    legend: {textStyle: text, pageTextStyle: text, inactiveColor: ink('dim')},
    tooltip: {backgroundColor: ink('soft'), borderColor: ink('line'), textStyle: {...text, fontSize: 13}},
    categoryAxis: {...axis, splitLine: {show: false}}, valueAxis: axis, logAxis: axis,
    visualMap: {textStyle: text}, dataZoom: {textStyle: text, borderColor: ink('line')},
  };
}

function draw(entry) {
  const zoom = entry.shown?.getOption().dataZoom?.map(({start, end}) => ({start, end}));
  entry.shown?.dispose();
  entry.place.style.height = entry.height() + 'px';
  entry.shown = echarts.init(entry.place, theme(), {renderer: 'svg'});
  entry.shown.setOption({animation: false, aria: {enabled: false}, ...entry.option()});
  if (zoom) entry.shown.setOption({dataZoom: zoom});
  // Paper scales the drawing that was made for the width of the screen.
  const svg = entry.place.querySelector('svg');
  svg.setAttribute('viewBox', `0 0 ${svg.getAttribute('width')} ${svg.getAttribute('height')}`);
  entry.drawn?.(entry.shown);
}

// A group of buttons of which one is pressed; a press calls `choose(key)`.
function choices(label, names, chosen, choose) {
  const buttons = Object.entries(names).map(([key, name]) => {
    const button = element('button', {type: 'button', 'aria-pressed': String(key === chosen)}, name);
    button.addEventListener('click', () => {
      for (const other of buttons) other.setAttribute('aria-pressed', String(other === button));
      choose(key);
    });
    return button;
  });
  return element('div', {class: 'buttons', role: 'group', 'aria-label': label}, element('span', {}, label), ...buttons);
}

function zoomButtons(entry, parts) {
  const buttons = Object.entries(parts).map(([name, [start, end]]) => {
    const button = element('button', {type: 'button'}, name);
    button.addEventListener('click', () => entry.shown.dispatchAction({type: 'dataZoom', start, end}));
    return button;
  });
  return element('div', {class: 'buttons', role: 'group', 'aria-label': 'Part shown'}, element('span', {}, 'Show'), ...buttons);
}

// Returns the height in pixels of a legend with these names, which may need several lines.
function legendHeight(names) {
  let lines = 1, at = 0;
  for (const name of names) {
    const wide = 46 + 7.5 * name.length;
    if (at > 0 && at + wide > main.clientWidth) { ++lines; at = 0; }
    at += wide;
  }
  return 10 + 24 * lines;
}

// Horizontal bars with names at the side. Narrow screens cut long names; the table shows them in full.
const lying = (names, more = {}) => ({
  tooltip: {trigger: 'axis', axisPointer: {type: 'shadow'}, confine: true, valueFormatter: number},
  grid: {left: 4, right: 20, top: more.legend ? legendHeight(more.series.map((s) => s.name)) : 8, bottom: 4, containLabel: true},
  xAxis: {type: 'value', splitNumber: isNarrow() ? 3 : 6, axisLabel: {formatter: brief}},
  yAxis: {type: 'category', data: names, inverse: true, axisLabel: {width: isNarrow() ? 150 : 260, overflow: 'truncate', interval: 0, hideOverlap: true}},
  ...more,
});

// The verdict, with which a page begins, and a chart of the figures behind it: [[name, value], ...]. A name without a value
// has no bar.
function lead(text, unit, bars) {
  const made = section('verdict', 'Verdict', element('p', {class: 'verdict'}, `Verdict: ${text}.`));
  const known = bars.filter(([, value]) => typeof value === 'number');
  if (known.length < 2) return;
  chart(made, {label: `${known.map(([name]) => name).join(' beside ')}, ${unit}`, height: 40 + 34 * known.length,
    option: () => lying(known.map(([name]) => name), {grid: {left: 4, right: 96, top: 8, bottom: 4, containLabel: true}, series: [{name: unit, type: 'bar', data: known.map(([, value], i) => ({value, itemStyle: {color: ink('c' + i)}})),
      label: {show: true, position: 'right', formatter: (p) => number(p.value), color: ink('ink')}}]}),
    figures: () => ({headings: ['what', unit], rows: known})});
}

function contents() {
  document.getElementById('contents').append(element('ul', {}, ...[...main.querySelectorAll('section')].map((s) =>
    element('li', {}, element('a', {href: '#' + s.id}, s.querySelector('h2').textContent)))));
}

function start() {
  contents();
  charts.forEach(draw);
  let width = main.clientWidth, waiting = 0;
  const redraw = () => charts.forEach(draw);
  addEventListener('resize', () => {
    if (main.clientWidth === width) return;
    width = main.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 100);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  // For print, charts are drawn in print colours and tables that are not too long are opened.
  matchMedia('print').addEventListener('change', redraw);
  addEventListener('beforeprint', () => document.querySelectorAll('details.figures').forEach((d) => {
    if (d.isLong()) return;
    d.fill();
    d.open = true;
  }));
  window.tesseraCharts = charts;  // for tests
}
