// Opens the pages of tessera sweep and crossover, and of runs of other kinds, in headless Chromium:
// node study_test.mjs TESSERA CHROMIUM WORK
import {execFileSync} from 'node:child_process';
import {mkdirSync, writeFileSync} from 'node:fs';
import {check, checkCharts, checkTabs, checks, equal, launch, rowsOf, sections, shown, visit} from './browser.mjs';

const [tool, chromium, work] = process.argv.slice(2);
mkdirSync(work, {recursive: true});
const browser = await launch(chromium, work);
const layer = ['--input-size=512', '--output-size=512', '--batch-size=16'];

const visitLayer = (name, words, look) => visit(browser, {tool, work, name, words: [...words, ...layer]}, look);

// Visits the page of a study with the figures that the page has; they are those of the JSON, unless the
// command has JSON of its own.
const visitStudy = (name, words, look, hasOwnJson = false) => visit(browser, {tool, work, name, words}, async (page, data) => {
  const document = await page.evaluate(() => JSON.parse(document.getElementById('report').textContent));
  const {page: how, ...figures} = document;
  if (!hasOwnJson) equal(figures, data, name);
  await look(page, document);
});

// The cells of a study's table as the page shows them: columns that are empty everywhere are left out.
function cellsOf(data, key) {
  const {columns} = data.page.tables.find((t) => t.table === key), rows = data[key];
  const used = columns.filter((c) => rows.some((row) => row[c.key] !== null && row[c.key] !== ''));
  return rows.map((row) => used.map((c) => shown(typeof row[c.key] === 'number' ? row[c.key] * c.scale : row[c.key])));
}
const chartOf = (data, key) => data.page.tables.find((t) => t.table === key).chart.label;
const verdictOf = (page) => page.textContent('.verdict');

await visitStudy('sweep', ['sweep', '--over=memory', '--values=2048,65536,638976', '--density=0.1', ...layer], async (page, data) => {
  equal(data.points.map((p) => p.cycles === null), [true, false, false], 'the smallest tile has a plan');
  equal(await rowsOf(page, 'Figures: ' + chartOf(data, 'points')), cellsOf(data, 'points'));
  equal(await verdictOf(page), `Verdict: ${data.verdict}.`);
  await checkCharts(page, 1);
  await checkTabs(page, 3);
});

await visitStudy('grid', ['sweep', '--over=density=0.01:0.5:3,block=1,8', '--single-phase=fwd', ...layer], async (page, data) => {
  equal(await rowsOf(page, 'Figures: ' + chartOf(data, 'points')), cellsOf(data, 'points'));
  const names = await page.evaluate(() => tesseraCharts[0].shown.getOption().series.map((s) => s.name));
  equal(names, ['cycles; block 1', 'static; block 1', 'dense', 'cycles; block 8', 'static; block 8'], 'the dense layer has one line');
  await checkCharts(page, 1);
});

for (const [name, machine] of [['crossover', 'gc200'], ['host-crossover', 'host']])
  await visitStudy(name, ['crossover', '--single-phase=fwd', '--machine', machine, ...layer], async (page, data) => {
    equal(await rowsOf(page, 'The density up to which sparse costs less'), cellsOf(data, 'blocks'));
    equal(await rowsOf(page, 'Figures: ' + chartOf(data, 'curve')), cellsOf(data, 'curve'));
    // The curve crosses the dense layer where the table says.
    const dense = data.dense_cycles ?? data.dense_seconds;
    for (const p of data.curve) {
      const row = data.blocks.find((b) => b.block === p.block.replace(' static', ''));
      const end = p.block.endsWith(' static') ? row.static_crossover_density : row.crossover_density;
      check(p.density > end || (p.cycles ?? p.seconds) < dense, `${p.block} at ${p.density}`);
    }
    await checkCharts(page, 1);
  });

// So small a layer would run dense.
const sparse = '--plan-constraints={"useDense": false}';
await visitLayer('planned', ['run', '--density=0.1', '--plan-only', sparse], async (page, data) => {
  equal(data.status, 'planned');
  check(!(await sections(page)).some((id) => ['steps', 'checks'].includes(id)), 'steps or checks of a run that was not');
  await checkCharts(page, 3);
});
await visitLayer('unchecked', ['run', '--density=0.1', '--ignore-data', '--single-phase=fwd', '--tiles-per-ipu=7', sparse], async (page, data) => {
  equal((await rowsOf(page, 'Checks'))[0][1], 'not checked');
  await checkCharts(page, 8);
});
await visitLayer('spilled', ['run', '--density=0.1', '--tiles-per-ipu=64', '--pattern=rowwise',
  '--matmul-options={"metaInfoBucketOversizeProportion": 0.02, "bucketConfidence": 0, "planConstraints": {"useDense": false, "partition": {"x": 8, "y": 8, "z": 1}}}'], async (page, data) => {
  check(data.buckets.spilled_blocks > 0, 'nothing spilled');
  const rows = await rowsOf(page, 'Buckets');
  equal(rows[2][1], String(data.buckets.spilled_blocks));
  const ways = await rowsOf(page, 'Propagation');
  equal(ways.map((row) => Number(row[1])), data.passes.map((p) => p.phases.find((f) => f.phase === 'propagate')?.steps ?? 0));
  await checkCharts(page, 10);
});

await visitLayer('static', ['run', '--static', '--density=0.1', '--block-size=4', '--report-tiles'], async (page, data) => {
  const rows = Object.fromEntries((await rowsOf(page, 'Plan')).map(([what, ...cells]) => [what, cells]));
  const {plan} = data.planned, all = (value) => plan.cost.passes.map(() => shown(value));
  equal(rows['tiles used'], all(plan.tiles));
  equal(rows['parts of the batch'], all(plan.parts.length));
  equal(rows.blocks, all(data.buckets.blocks));
  check(!(await sections(page)).includes('spills'), 'spills of a pattern that stays');
  await checkCharts(page, 8);
});

// The plan of this layer has a layout of its own for GradA, whose x and y are those of the layer exchanged.
await visit(browser, {tool, work, name: 'own-layout', words: ['run', '--input-size=96', '--output-size=384', '--batch-size=64', '--density=0.3', '--report-tiles', sparse]}, async (page, data) => {
  const {plan} = data.planned, own = plan.backward[0];
  check(own !== undefined, 'GradA has no layout of its own');
  const cut = ({g, x, y, z}) => [g, x, y, z].join('×');
  const here = cut(plan.partition), there = cut({...own.partition, x: own.partition.y, y: own.partition.x});
  const ownGradW = own.cost.passes.length > 1;
  const rows = Object.fromEntries((await rowsOf(page, 'Plan')).map(([what, ...cells]) => [what, cells]));
  equal(rows['cut of groups, outputs, inputs, batch'], [here, there, ownGradW ? there : here]);
  equal(rows['bucket, values'], [plan, own, ownGradW ? own : plan].map((p) => shown(p.nonzeros_per_bucket)));
  equal(rows.kernel, [plan.fwd, `${own.fwd} of transpose(R)`, ownGradW ? own.grad_w : plan.grad_w]);
  const runners = await rowsOf(page, 'Figures: Cycles that the next best plans lose');
  const names = runners.map((row) => row[0].split(',')[0]);
  equal([...new Set(names)], ownGradW ? ['Fwd', 'GradA + GradW'] : ['Fwd + GradW', 'GradA']);
  await page.click('#tiles button:text-is("GradA")');
  const tiles = await rowsOf(page, 'Figures: Tile map: a field for each tile, by number from left to right');
  equal(Math.max(...tiles.map((row) => Number(row[1]) || 0)) + 1, own.partition.y, 'outputs of the map of GradA');
  equal(Math.max(...tiles.map((row) => Number(row[2]) || 0)) + 1, own.partition.x, 'inputs of the map of GradA');
  const colors = await page.evaluate(() => tesseraCharts.filter((c) => c.label.includes('ycles of each pass by')).map((c) => c.shown.getOption().series.map((s) => s.itemStyle.color)));
  for (const used of colors) equal(new Set(used).size, used.length, 'two terms have one colour');
});
// Reports side by side, and the layers of a file.
const files = ['a', 'b'].map((name) => `${work}/${name}.json`);
for (const [i, machine] of ['gc200', 'bow'].entries())
  writeFileSync(files[i], execFileSync(tool, ['run', ...layer, '--density=0.1', '--single-phase=fwd', '--machine', machine, '--json', '--quiet']));
await visitStudy('compare', ['compare', ...files], async (page, data) => {
  for (const key of ['cycles', 'bytes']) equal(await rowsOf(page, 'Figures: ' + chartOf(data, key)) ?? [], cellsOf(data, key));
  equal((await rowsOf(page, 'Layer and plan'))[0], ['machine', 'gc200', 'bow']);
  await checkCharts(page, 1);
});
writeFileSync(`${work}/w.txt`, '8 8\n' + '1 0 0 0 0 0 1 0\n'.repeat(8));
await visitStudy('advise', ['advise', `${work}/w.txt`, '--batch-size=16', '--machine=gc200', '--machine=host'], async (page, data) => {
  for (const key of ['gc200', 'host']) equal(await rowsOf(page, 'Figures: ' + chartOf(data, key)), cellsOf(data, key));
  equal(await verdictOf(page), `Verdict: ${data.verdict}.`);
  await checkCharts(page, 2);
}, /*hasOwnJson=*/true);
await browser.close();
console.log(`${checks()} checks of the other pages passed`);
