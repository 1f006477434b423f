// Chromium on a page, and what every page must hold.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {createRequire} from 'node:module';
import path from 'node:path';

let count = 0;
export const checks = () => count;
export const check = (condition, what) => { assert.ok(condition, what); ++count; };
export const equal = (got, wanted, what) => { assert.deepEqual(got, wanted, what); ++count; };

export function launch(chromium, work) {
  const {chromium: type} = createRequire(path.join(work, 'package.json'))('playwright-core');
  return type.launch({executablePath: chromium, args: ['--no-sandbox']});
}

// The page of a file, with what it complains of and what it asks the network for.
export async function open(browser, file, {width, colorScheme}) {
  const page = await browser.newPage({viewport: {width, height: 900}, colorScheme});
  const complaints = [];
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()); });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => { if (!/^(file|data):/.test(request.url())) complaints.push('network: ' + request.url()); });
  await page.goto('file://' + file);
  return {page, complaints};
}

export const openFigures = (page) => page.$$eval('details.figures', (all) => all.forEach((d) => { d.fill(); d.open = true; }));

// Rows of the table under the chart (or the region) with this label, as text without separators.
export const rowsOf = (page, label) => page.$$eval('.table', (all, wanted) => {
  const region = all.find((t) => t.getAttribute('aria-label') === wanted);
  return region && [...region.querySelectorAll('tbody tr')].map((tr) => [...tr.children].map((td) => td.textContent.replaceAll(/(?<=\d),(?=\d{3})/g, '')));
}, label);

// As the page shows numbers: whole ones in full, all others with three digits.
const digits = (n) => Number.isInteger(n) ? {} : Math.abs(n) < 100 ? {maximumSignificantDigits: 3} : {maximumFractionDigits: 0};
export const shown = (value) => typeof value === 'number' ? value.toLocaleString('en-US', {...digits(value), useGrouping: false}) : String(value ?? '-');

export const sections = (page) => page.$$eval('main section', (all) => all.map((s) => s.id));

// Every section has something under its heading, and is what a link of the contents leads to.
export async function checkSections(page) {
  const found = await page.evaluate(() => ({
    empty: [...document.querySelectorAll('main section')].filter((s) => !s.querySelector('.card, tbody tr, .chart, p')).map((s) => s.id),
    bare: [...document.querySelectorAll('main .table')].filter((t) => !t.querySelector('tbody tr')).map((t) => t.getAttribute('aria-label')),
    dead: [...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href')).filter((to) => !to.startsWith('#') || !document.getElementById(to.slice(1))),
    ids: [...document.querySelectorAll('main section')].map((s) => '#' + s.id),
    links: [...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href')),
  }));
  equal(found.empty, [], 'empty sections');
  equal(found.bare, [], 'tables without rows');
  equal(found.dead, [], 'links that lead nowhere');
  equal(found.links, found.ids, 'the contents');
}

const usualViews = [{width: 1280, colorScheme: 'light'}, {width: 390, colorScheme: 'dark'}];

// A page that `tool` makes with these words beside the JSON it prints: made once, opened in every
// view, where it must be readable without complaint; `look(page, data, view)` checks the rest.
export async function visit(browser, {tool, work, name, words, views = usualViews, env = process.env}, look) {
  const file = path.join(work, name + '.html');
  const data = JSON.parse(execFileSync(tool, [...words, '--json', '--html', file], {maxBuffer: 1 << 26, env}));
  await visitFile(browser, {work, name, views, data}, look);
}

// The same for a page that is there.
export async function visitFile(browser, {work, name, views = usualViews, data}, look) {
  const file = path.join(work, name + '.html');
  for (const view of views) {
    const {page, complaints} = await open(browser, file, view);
    equal(complaints, [], name);
    await checkReadable(page, `${name} at ${view.width}`, view.width);
    await checkSections(page);
    await page.screenshot({path: path.join(work, `${name}-${view.colorScheme}-${view.width}.png`), fullPage: true});
    await openFigures(page);
    equal((await page.textContent('main')).match(/NaN|undefined|Infinity|\[object/g), null, name);
    await look(page, data, view);
    equal(complaints, [], name);
    await page.close();
  }
}

// Text of at least 12 pixels that stands out from the ground, nothing sideways, no text on text.
export async function checkReadable(page, what, width) {
  check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what} is wider than ${width}`);
  const bad = await page.evaluate(() => {
    const parts = (color) => color.match(/[\d.]+/g).slice(0, 3).map(Number);
    const light = (color) => {
      const [r, g, b] = parts(color).map((v) => { const c = v / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (e) => {
      for (let at = e; at; at = at.parentElement) {
        const color = getComputedStyle(at).backgroundColor;
        if (color !== 'rgba(0, 0, 0, 0)' && color !== 'transparent') return color;
      }
      return 'rgb(255, 255, 255)';
    };
    const found = [];
    const texts = [...document.querySelectorAll('body *:not(script):not(style):not(noscript)')].filter((e) =>
      [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && e.getClientRects().length && !e.closest('.skip'));
    for (const e of texts) {
      const style = getComputedStyle(e), isDrawn = Boolean(e.closest('svg'));
      if (parseFloat(style.fontSize) < 12) found.push(`${style.fontSize}: ${e.textContent}`);
      const [a, b] = [light(isDrawn ? style.fill : style.color), light(ground(e))].sort((x, y) => y - x);
      if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`contrast ${((a + 0.05) / (b + 0.05)).toFixed(2)}: ${e.textContent}`);
    }
    for (const svg of document.querySelectorAll('.chart svg')) {
      const boxes = [...svg.querySelectorAll('text')].filter((t) => t.textContent.trim()).map((t) => ({text: t.textContent, box: t.getBoundingClientRect()}));
      boxes.forEach((a, i) => {
        if (a.box.left < -1 || a.box.right > innerWidth + 1) found.push(`cut off: ${a.text}`);
        for (const b of boxes.slice(i + 1)) {
          const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
          const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
          if (wide > 2 && high > 4) found.push(`${a.text} lies on ${b.text}`);
        }
      });
    }
    return found;
  });
  check(bad.length === 0, `${what}:\n${bad.slice(0, 20).join('\n')}`);
}

// Every chart is drawn, says what it shows, and has figures under it.
export async function checkCharts(page, least) {
  const charts = await page.$$eval('.chart', (all) => all.map((c) => ({label: c.getAttribute('aria-label'), ink: c.querySelectorAll('svg path, svg rect').length,
    text: c.querySelectorAll('svg text').length, rows: c.closest('figure').querySelectorAll('tbody tr').length})));
  check(charts.length >= least, `${charts.length} charts`);
  for (const chart of charts) {
    check(chart.label?.length > 10, 'a chart without a label');
    check(chart.ink > 3 && chart.text > 0, `${chart.label} is empty`);
    check(chart.rows > 0, `${chart.label} has no figures`);
  }
}

// Tab goes through everything that can be used, in the order of the page, and shows where it is.
export async function checkTabs(page, least) {
  await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
  const stops = [];
  for (let i = 0; i < 400; ++i) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(() => {
      const e = document.activeElement;
      if (e === document.body) return null;
      const style = getComputedStyle(e);
      const all = [...document.querySelectorAll('*')];
      return {tag: e.tagName, name: e.className, at: all.indexOf(e), seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2};
    });
    if (!stop) break;
    stops.push(stop);
  }
  check(stops.length >= least, `${stops.length} stops of the Tab key`);
  check(stops[0].name === 'skip', 'the first stop is not the skip link');
  for (const [i, stop] of stops.entries()) {
    check(stop.seen, `focus cannot be seen on ${stop.tag} ${stop.name}`);
    check(i === 0 || stop.at > stops[i - 1].at, `Tab jumps back to ${stop.tag} ${stop.name}`);
  }
}

// On paper everything is dark on white, whatever the screen was.
export async function checkPrint(page) {
  await page.emulateMedia({media: 'print', colorScheme: 'dark'});
  await page.waitForFunction(() => getComputedStyle(document.querySelector('.chart svg text')).fill === 'rgb(27, 31, 36)', null, {timeout: 10000})
    .catch(() => check(false, 'charts keep the colours of the screen on paper'));
  const colors = await page.evaluate(() => ({paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
    drawn: getComputedStyle(document.querySelector('.chart svg text')).fill, nav: getComputedStyle(document.querySelector('nav')).display}));
  equal(colors, {paper: 'rgb(255, 255, 255)', ink: 'rgb(27, 31, 36)', drawn: 'rgb(27, 31, 36)', nav: 'none'});
  const pdf = await page.pdf({format: 'A4'});
  check(pdf.subarray(0, 5).toString() === '%PDF-' && pdf.length > 20000, 'no PDF');
  await page.emulateMedia({media: 'screen'});
}
