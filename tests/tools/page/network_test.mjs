// Opens the page of tessera network in headless Chromium: node network_test.mjs TESSERA CHROMIUM WORK
import {mkdirSync, writeFileSync} from 'node:fs';
import {execFileSync} from 'node:child_process';
import {check, checkCharts, checkPrint, checkTabs, checks, equal, launch, rowsOf, shown, visit} from './browser.mjs';

const [tool, chromium, work] = process.argv.slice(2);
mkdirSync(work, {recursive: true});
const file = work + '/network.json';
const network = {batch: 24, data_type: 'float', layers: [
  {inputs: 40, outputs: 64, density: 0.2, activation: 'relu'}, {inputs: 64, outputs: 48, density: 0.3, block_size: 4, activation: 'gelu', recompute: true},
  {inputs: 48, outputs: 8, dense: true, bias: false}], loss: 'softmax-cross-entropy', optimiser: {rule: 'adam', rate: 0.01}};
writeFileSync(file, JSON.stringify(network));
// A machine may have any name.
const machine = work + '/machine.json', name = '<img src=x onerror=alert(1)>';
writeFileSync(machine, execFileSync(tool, ['machine', 'show', 'gc200'], {encoding: 'utf8'}).replace('"gc200"', JSON.stringify(name)));

const sum = (rows, value) => rows.reduce((all, row) => all + value(row), 0);
const browser = await launch(chromium, work);
await visit(browser, {tool, work, name: 'network', words: ['network', file, '--steps=4', '--tiles-per-ipu=32', '--machine=' + machine]}, async (page, run) => {
  equal((await page.textContent('#subtitle')).includes(name), true, 'the name of the machine is text');
  equal(await page.locator('img').count(), 0);
  equal((await rowsOf(page, 'Layers')).map((row) => row.slice(0, 3)), network.layers.map((l, i) => [i + 1, l.inputs, l.outputs].map(shown)));
  // Every figure of the JSON is on the page, and the steps make up the run.
  equal((await rowsOf(page, 'Figures: Cycles of each layer by work')).map((row) => [row[0], row[1], row[2], row[3], row[5]]),
    run.work.map((w) => [w.layer, w.work, w.cycles, w.planned_cycles, w.moved_bytes].map(shown)));
  equal(sum(run.steps, (s) => s.cycles + s.overhead_cycles), run.cycles);
  equal(sum(await rowsOf(page, 'Figures: Cycles of each layer by phase of its steps'), (row) => Number(row[3])), run.cycles);
  equal(sum(run.steps, (s) => s.moved_bytes), run.moved_bytes);
  const moved = await page.$$eval('#exchanges .table tbody tr', (rows) => rows.map((row) => Number(row.children[3].textContent.replaceAll(',', ''))));
  equal(moved.reduce((all, bytes) => all + bytes, 0), run.moved_bytes);
  equal(Math.max(...run.steps.map((s) => s.held_bytes)) <= run.tile_bytes, true, 'no step holds more than the peak');
  equal(sum(run.memory.at_peak, (held) => held.bytes), run.tile_bytes);
  const steps = await rowsOf(page, 'Figures: Each step of all layers, one after the other, in cycles');
  equal(steps.length, run.steps.length);
  equal(Number(steps.at(-1)[5]) + run.steps.at(-1).cycles + run.steps.at(-1).overhead_cycles, run.cycles);
  equal(sum(run.verdict.work, (w) => w.dense_cycles), run.verdict.dense_cycles);
  equal((await rowsOf(page, 'Figures: Loss before each step, always of the same batch')).length, 4);
  check((await page.textContent('#patterns')).replaceAll(',', '').includes(shown(run.pattern_update.upload_bytes)), 'the page has the bytes of new patterns');
  await checkTabs(page, 10);
  await page.getByRole('button', {name: 'up to the memory of a tile'}).click();
  await page.getByRole('button', {name: 'loss and backward'}).click();
  await checkCharts(page, 7);
  await checkPrint(page);
});
// Without a loss there are neither losses nor backward passes; many layers have one bar each.
writeFileSync(file, JSON.stringify({batch: 16, layers: Array.from({length: 12}, () => ({inputs: 64, outputs: 64, density: 0.1, activation: 'relu'}))}));
await visit(browser, {tool, work, name: 'network forward', words: ['network', file, '--tiles-per-ipu=16']}, async (page, run) => {
  equal(run.losses, []);
  equal(await page.locator('#loss').count(), 0);
  equal((await rowsOf(page, 'Layers')).length, 12);
  await checkCharts(page, 6);
});
// The measured page has a bar for each work of each layer, and the losses.
writeFileSync(file, JSON.stringify({batch: 24, data_type: 'float', layers: network.layers.map(({recompute, ...layer}) => layer), loss: network.loss, optimiser: network.optimiser}));
await visit(browser, {tool, work, name: 'network on this computer', words: ['network', file, '--machine=host', '--steps=3']}, async (page, run) => {
  equal((await page.textContent('h1')), 'Training step of a network');
  equal((await rowsOf(page, 'Figures: Milliseconds by layer and work')).length, run.work.length);
  equal((await rowsOf(page, 'Figures: Loss before each step')).length, 3);
  await checkCharts(page, 2);
});
await browser.close();
console.log(`${checks()} checks`);
