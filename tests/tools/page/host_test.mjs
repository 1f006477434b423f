// Opens the pages of runs on this computer in headless Chromium: node host_test.mjs TESSERA CHROMIUM WORK
import {execFileSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import path from 'node:path';
import {check, checkCharts, checkPrint, checkTabs, checks, equal, launch, rowsOf, sections, shown, visit, visitFile} from './browser.mjs';

const [tool, chromium, work] = process.argv.slice(2);
mkdirSync(work, {recursive: true});
const browser = await launch(chromium, work);
const everyView = [1280, 390].flatMap((width) => ['light', 'dark'].map((colorScheme) => ({width, colorScheme})));
const wanted = ['verdict', 'summary', 'passes', 'forecast', 'cells', 'computer', 'checks', 'origin'];
const cache = mkdtempSync(path.join(work, 'cache-'));
const withCache = {...process.env, XDG_CACHE_HOME: cache};
const visitHost = (name, words, look, more = {}) => visit(browser, {tool, work, name, env: withCache, ...more,
  words: ['run', '--machine=host', '--input-size=700', '--output-size=520', '--batch-size=40', '--density=0.05', '--threads=2', ...words]}, look);
const row = (...cells) => cells.map(shown);
const cardsOf = (page) => page.$$eval('.card', (all) => Object.fromEntries(all.map((c) => [c.firstChild.textContent, c.querySelector('b').textContent.replaceAll(',', '')])));

// What the tables on the page must say, worked out from the report alone.
async function checkFigures(page, {host, passes, total, status}) {
  const rate = (p) => p.useful_flops / p.seconds;
  const peak = host.thread_peak_flops_per_second && host.thread_peak_flops_per_second * Math.min(2, host.cores);
  equal(await rowsOf(page, 'Passes'), passes.map((p) => row(p.pass, p.method, p.runs, 1e6 * p.seconds, 1e-9 * rate(p), ...(peak ? [100 * rate(p) / peak] : []))));
  const spent = await rowsOf(page, 'Figures: Measured time of each pass and what it went on, µs');
  spent.forEach((cells, i) => {
    const figures = cells.slice(1).map(Number), p = passes[i];
    const near = (got, is) => check(Math.abs(got - is) < 0.01 * is + 1e-9, `${p.pass}: ${got} is not ${is}`);
    near(figures[0], 1e6 * p.copy_seconds);
    near(figures[1], 100 * p.copy_seconds / p.seconds);
    near(figures[2], 1e6 * p.kernel_thread_seconds / 2);
    near(figures[0] + figures[2] + figures[4], 1e6 * p.seconds);
    near(figures[1] + figures[3] + figures[5], 100);
  });
  equal(spent.length, passes.length);
  equal(await rowsOf(page, 'Figures: Time that was forecast for each pass, and that it took, µs'),
    passes.map((p) => row(p.pass, 1e6 * p.forecast_seconds, 1e6 * p.seconds, p.seconds / p.forecast_seconds)));
  const cards = await cardsOf(page);
  equal(cards.status, status);
  equal(cards['time (measured), µs'], shown(1e6 * total.seconds));
  equal(cards['useful GFLOP/s'], shown(1e-9 * (total.useful_flops / total.seconds)));
  equal(cards['encoded once, µs'], shown(1e6 * total.encode_seconds));
  equal(cards['of measured peak, %'], peak ? shown(100 * (total.useful_flops / total.seconds) / peak) : undefined);
  equal(cards['stored values'], shown(host.values));
  const computer = Object.fromEntries(await rowsOf(page, 'Computer and encoding'));
  for (const [what, figure] of Object.entries({processor: host.cpu, cores: host.cores, threads: host.threads, 'L1, L2, L3, bytes': [host.l1_bytes, host.l2_bytes, host.l3_bytes].join(', '),
    'blocks of R': `${host.block_rows}×${host.block_cols}`, 'stored values': host.values, 'encoding, once, µs': 1e6 * host.encode_seconds, sums: host.partials_type}))
    equal(computer[what], shown(figure), what);
}

const cellsOf = ({passes}) => passes.filter((p) => p.method === 'sparse').map(({pass, cells: c}) =>
  row(pass, c.outputs, c.inputs, c.batch, c.packed ? 'copied' : 'read in place', c.gathered ? 'in a buffer' : 'in place'));

async function checkRun(page, data, {width, colorScheme}) {
  const isCut = data.passes.some((p) => p.method === 'sparse');
  equal(await sections(page), wanted.filter((id) => (id !== 'cells' || isCut) && (id !== 'verdict' || data.verdict)));
  if (data.verdict) equal(await page.textContent('#verdict .verdict'), `Verdict: ${data.verdict.text}.`);
  equal(data.status, 'passed');
  await checkFigures(page, data);
  if (isCut) equal(await rowsOf(page, 'Cells'), cellsOf(data));
  equal((await rowsOf(page, 'Checks')).map((cells) => Number(cells[1])), data.passes.map((p) => p.check.compared));
  equal(Object.fromEntries(await rowsOf(page, 'Origin of figures')), data.how);
  const notes = await page.$$eval('#summary p', (all) => all.map((p) => p.textContent));
  equal(notes, data.notes);
  await checkCharts(page, 2);
  await checkTabs(page, 14);
  await page.focus('#forecast summary');
  await page.keyboard.press('Space');
  check(!(await page.$eval('#forecast details', (d) => d.open)), 'the space bar closes no figures');
  await page.focus('nav a[href="#computer"]');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash === '#computer');  // else the contents lead nowhere
  if (width === 1280 && colorScheme === 'dark') await checkPrint(page);
}

await visitHost('host', ['--self-check'], async (page, data, view) => {
  equal(data.notes.filter((n) => n.startsWith('self-check')).length, 3);
  check(data.notes.some((n) => n.startsWith('using default rates')), 'rates of another computer are not told');
  await checkRun(page, data, view);
}, {views: everyView});
// Rates do not settle while other programs use the computer.
let isCalibrated = true;
try {
  execFileSync(tool, ['machine', 'calibrate'], {env: withCache, stdio: 'pipe'});
} catch (error) {
  check(String(error.stderr).includes('did not settle'), String(error.stderr));
  isCalibrated = false;
}
if (isCalibrated) await visitHost('host-calibrated', ['--block-size=4', '--data-type=float'], async (page, data, view) => {
  check(data.host.thread_peak_flops_per_second > 0, 'the peak is not in the report');
  await checkRun(page, data, view);
});
await visitHost('host-dense', ['--dense=always', '--single-phase=fwd'], checkRun);
await visitHost('host-planned', ['--plan-only'], async (page, data) => {
  equal(data.status, 'planned');
  equal(await sections(page), wanted.filter((id) => id !== 'passes' && id !== 'verdict'));
  equal(await rowsOf(page, 'Figures: Time that is forecast for each pass, µs'), data.passes.map((p) => row(p.pass, 1e6 * p.forecast_seconds)));
  equal(Object.keys(await cardsOf(page)), ['status', 'encoded once, µs', 'stored values', 'version', 'page made on']);
  await checkCharts(page, 1);
});
await visitHost('host-unchecked', ['--ignore-data', '--single-phase=wu'], async (page, data) => {
  equal(data.status, 'unchecked');
  equal((await rowsOf(page, 'Checks'))[0][1], 'not checked');
});

// What Ctrl-C after the first of two passes leaves.
const cut = (report) => {
  for (const key of ['runs', 'seconds', 'copy_seconds', 'kernel_thread_seconds', 'useful_flops']) delete report.passes[1][key];
  report.passes[1].check = null;
  return {...report, status: 'partial'};
};
const whole = readFileSync(path.join(work, 'host-unchecked.html'), 'utf8');
const inside = /(?<=<script type="application\/json" id="report">).*?(?=<\/script>)/s;
const data = cut(JSON.parse(whole.match(inside)[0]));
writeFileSync(path.join(work, 'host-partial.html'), whole.replace(inside, () => JSON.stringify(data)));
await visitFile(browser, {work, name: 'host-partial', data}, async (page) => {
  equal(await sections(page), wanted.filter((id) => id !== 'verdict' || data.verdict));
  equal((await rowsOf(page, 'Passes')).map((cells) => cells[0]), ['Fwd']);
  const [, missing] = await rowsOf(page, 'Figures: Time that was forecast for each pass, and that it took, µs');
  equal(missing, row('GradW', 1e6 * data.passes[1].forecast_seconds, '-', '-'));
  await checkCharts(page, 2);
});
await browser.close();
rmSync(cache, {recursive: true});
console.log(`${checks()} checks of the pages of this computer passed`);
