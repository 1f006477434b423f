// Opens the cost report of a real run in headless Chromium: node page_test.mjs TOOL CHROMIUM WORK
// What must hold is thrown as an error; the last line counts the checks.
import {execFileSync} from 'node:child_process';
import {mkdirSync} from 'node:fs';
import path from 'node:path';
import {check, checkCharts, checkPrint, checkReadable, checkSections, checkTabs, checks, equal, launch, open, openFigures, rowsOf, sections, shown} from './browser.mjs';

const [tool, chromium, work] = process.argv.slice(2);
mkdirSync(work, {recursive: true});
const file = path.join(work, 'report.html');
const text = execFileSync(tool, ['--input-size=4096', '--output-size=512', '--density=0.05', '--batch-size=256', '--json', '--report-tiles', '--html', file],
  {maxBuffer: 1 << 26});
const report = JSON.parse(text);
const tiles = report.planned.machine.tiles;
const round = (row) => row.map(shown);

// What the tables on the page must say, worked out from the report alone.
async function checkFigures(page) {
  const steps = report.passes.flatMap((p) => p.steps.map((s, i) => ({...s, name: `${p.pass} ${i + 1} ${s.phase}`})));
  let at = 0;
  const timed = steps.map((s) => { const starts = at + s.overhead_cycles; at = starts + s.cycles; return {...s, starts}; });
  equal(at, report.total.cycles, 'steps do not add up');
  equal(await rowsOf(page, 'Figures: Each step of all passes, one after the other, in cycles'),
    timed.map((s) => round([s.name, s.kind, s.starts, s.cycles, s.overhead_cycles, s.slowest_tile, s.slowest_over_mean, s.moved_bytes])));
  equal(await rowsOf(page, 'The longest step of each pass'), report.passes.map(({pass, imbalance: i}) =>
    round([pass, `${i.longest_step} ${i.phase}`, i.cycles, i.slowest_tile, i.slowest_over_mean, i.compute_slowest_over_mean])));
  const cost = await rowsOf(page, 'Figures: Cycles of each pass by phase');
  equal(cost.map((row) => Number(row.at(-1))), report.passes.flatMap((p) => [p.planned_cycles, p.cycles]), 'cost by phase');
  equal(await rowsOf(page, 'Figures: Planned cycles of each pass by term of the cost model'),
    report.planned.plan.cost.passes.flatMap((p) => p.terms.map((t) => round([p.pass, t.name, t.cycles, t.temp]))));
  const did = report.passes[0].tiles;
  const map = await rowsOf(page, 'Figures: Tile map: a field for each tile, by number from left to right');
  equal(map.length, tiles);
  equal(map.map((row) => row.slice(4, 9)), did.compute_cycles.map((_, t) =>
    round([did.compute_cycles[t], did.exchange_cycles[t], did.sent_bytes[t], did.received_bytes[t], did.memory_bytes[t]])));
  equal(Math.max(...map.map((row) => Number(row[9]) || 0)), report.buckets.fullest_values, 'the fullest bucket');
  equal(map.reduce((sum, row) => sum + (Number(row[9]) || 0), 0), report.buckets.blocks, 'values in all buckets');
  equal(await rowsOf(page, 'Figures: Bytes that each tile holds at most, by pass, and what it has'),
    did.memory_bytes.map((_, t) => round([t, ...report.passes.map((p) => p.tiles.memory_bytes[t]), report.total.tile_memory_bytes])));
  equal(await rowsOf(page, 'Figures: From which phase to which each buffer lives'), did.buffers.map((b) => round([b.buffer, b.largest_bytes,
    `${b.first_phase + 1} ${did.phases[b.first_phase]}`, `${b.last_phase + 1} ${did.phases[b.last_phase]}`, b.resident ? 'resident' : 'no'])));
  equal((await rowsOf(page, 'Checks')).map((row) => Number(row[1])), report.passes.map((p) => p.check.compared));
  const histogram = await rowsOf(page, 'Figures: Buckets by how full they are, % of their room for values');
  equal(histogram.reduce((sum, row) => sum + Number(row[1]), 0), ['g', 'x', 'y', 'z'].reduce((all, d) => all * report.planned.plan.partition[d], 1), 'buckets in the histogram');
  const cards = await page.$$eval('.card', (all) => all.map((c) => c.querySelector('b').textContent.replaceAll(',', '')));
  for (const figure of [report.status, report.total.cycles, report.total.planned_cycles, report.total.moved_bytes, report.total.fullest_tile_bytes, report.verdict.dense_cycles])
    check(cards.includes(String(figure)), `${figure} is on no card`);
  equal(await page.$eval('#verdict .verdict', (p) => p.textContent), `Verdict: ${report.verdict.text}.`);
}

const chosen = (page) => page.$eval('#tiles .chosen', (p) => p.textContent.replaceAll(/(?<=\d),(?=\d{3})/g, ''));
const mapOption = (page) => page.evaluate(() => tesseraCharts.find((c) => c.label.startsWith('Tile map')).shown.getOption());

// Arrow keys, ends, zoom and buttons of the tile map; the line says what the report says.
async function checkMap(page, columns) {
  await page.focus('#tiles .chart');
  for (const key of ['ArrowRight', 'ArrowRight', 'ArrowDown', 'ArrowLeft']) await page.keyboard.press(key);
  const tile = columns + 1, did = report.passes[0].tiles;
  const said = await chosen(page);
  check(said.startsWith(`Tile ${tile} (`), said);
  check(said.includes(`compute cycles ${did.compute_cycles[tile]};`) && said.includes(`received bytes ${did.received_bytes[tile]};`), said);
  const selected = await page.evaluate(() => Object.keys(tesseraCharts.find((c) => c.label.startsWith('Tile map')).shown.getOption().series[0].selectedMap));
  equal(selected, [`tile ${tile}`]);
  await page.keyboard.press('End');
  check((await chosen(page)).startsWith(`Tile ${tiles - 1} `), 'End is not the last tile');
  await page.keyboard.press('ArrowRight');
  check((await chosen(page)).startsWith(`Tile ${tiles - 1} `), 'beyond the last tile');
  await page.keyboard.press('Home');
  check((await chosen(page)).startsWith('Tile 0 '), 'Home is not the first tile');
  await page.keyboard.press('+');
  const spans = async () => (await mapOption(page)).dataZoom.map((z) => Math.round(z.end - z.start));
  equal(await spans(), [50, 50], 'plus does not zoom');
  await page.keyboard.press('0');
  equal(await spans(), [100, 100], '0 does not show all');
  // Another pass, another figure, and the tile that has most of it.
  await page.click('#tiles button:text-is("GradW")');
  await page.click('#tiles button:text-is("received, bytes")');
  await page.click('#tiles button:text-is("Most")');
  const received = report.passes[2].tiles.received_bytes, most = Math.max(...received);
  check((await chosen(page)).startsWith(`Tile ${received.indexOf(most)} `) && (await chosen(page)).includes(`, GradW: `), await chosen(page));
  equal((await mapOption(page)).visualMap[0].max, most);
  await page.click('#tiles button:text-is("Fwd")');
  await page.click('#tiles .chart', {position: {x: 200, y: 100}});
  check(!(await chosen(page)).startsWith(`Tile ${received.indexOf(most)} `), 'a click on the map chooses nothing');
}

async function checkZoom(page) {
  const span = () => page.evaluate(() => tesseraCharts.find((c) => c.label.startsWith('Each step')).shown.getOption().dataZoom.map((z) => [z.start, z.end])[0]);
  await page.click('#steps button:text-is("first half")');
  equal(await span(), [0, 50]);
  await page.click('#steps button:text-is("GradA")');
  const fwd = 100 * report.passes[0].cycles / report.total.cycles;
  check(Math.abs((await span())[0] - fwd) < 0.01, 'GradA does not begin where Fwd ends');
  const top = () => page.evaluate(() => tesseraCharts.find((c) => c.label.startsWith('Bytes that each')).shown.getModel().getComponent('yAxis').axis.scale.getExtent()[1]);
  check(await top() < 2 * report.total.fullest_tile_bytes, 'what is used is not in the picture');
  await page.click('#memory button:text-is("up to the capacity")');
  check(await top() >= report.total.tile_memory_bytes, 'the capacity is not in the picture');
}

const browser = await launch(chromium, work);
const wanted = ['verdict', 'summary', 'plan', 'cost', 'runners', 'tiles', 'memory', 'liveness', 'steps', 'imbalance', 'spills', 'checks', 'origin'];
for (const colorScheme of ['light', 'dark'])
  for (const width of [1280, 390]) {
    const {page, complaints} = await open(browser, file, {width, colorScheme});
    equal(await sections(page), wanted);
    await checkSections(page);
    equal(complaints, []);
    await page.screenshot({path: path.join(work, `report-${colorScheme}-${width}.png`), fullPage: true});
    await checkReadable(page, `${colorScheme} at ${width}`, width);
    await checkTabs(page, 40);
    await page.focus('#cost summary');
    await page.keyboard.press('Space');
    check(await page.$eval('#cost details', (d) => d.open), 'the space bar opens no figures');
    await openFigures(page);
    await checkCharts(page, 10);
    if (colorScheme === 'light' && width === 1280) await checkFigures(page);
    if (colorScheme === 'light') await checkReadable(page, `${colorScheme} at ${width} with tables`, width);
    await checkMap(page, width === 1280 ? 46 : 32);
    await checkZoom(page);
    if (width === 1280 && colorScheme === 'dark') await checkPrint(page);
    equal(complaints, []);
    await page.close();
  }
await browser.close();
console.log(`${checks()} checks of the report page passed`);
