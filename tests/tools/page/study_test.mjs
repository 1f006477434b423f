// Opens the pages of tessera sweep and crossover, and of runs of other kinds, in headless Chromium:
// node study_test.mjs TESSERA CHROMIUM WORK
import {mkdirSync} from 'node:fs';
import {check, checkCharts, checkTabs, checks, equal, launch, rowsOf, sections, shown, visit} from './browser.mjs';

const [tool, chromium, work] = process.argv.slice(2);
mkdirSync(work, {recursive: true});
const browser = await launch(chromium, work);
const layer = ['--input-size=512', '--output-size=512', '--batch-size=16'];

const visitLayer = (name, words, look) => visit(browser, {tool, work, name, words: [...words, ...layer]}, look);

await visitLayer('sweep', ['sweep', '--over=memory', '--values=2048,65536,638976', '--density=0.1'], async (page, data) => {
  equal(data.points.map((p) => p.cycles === null), [true, false, false], 'the smallest tile has a plan');
  equal(await rowsOf(page, 'Figures: Planned cycles for each value of memory'),
    data.points.map((p) => [shown(p.value), p.cycles === null ? 'no plan' : shown(p.cycles), shown(p.tiles), shown(p.temporary_bytes)]));
  await checkCharts(page, 1);
  await checkTabs(page, 3);
});

await visitLayer('crossover', ['crossover', '--single-phase=fwd'], async (page, data) => {
  equal(await rowsOf(page, 'Crossover'), data.blocks.map((b) => [b.block, shown(b.crossover_density), shown(b.cycles)]));
  equal(await rowsOf(page, 'Figures: Planned cycles by density, and those of the dense layer'),
    data.blocks.flatMap((b) => b.curve.map((p) => [b.block, shown(p.density), shown(p.cycles ?? 'no plan')])));
  // The curve crosses the dense layer where the table says.
  for (const b of data.blocks)
    for (const p of b.curve) check(p.density > b.crossover_density || p.cycles < data.dense_cycles, `${b.block} at ${p.density}`);
  await checkCharts(page, 1);
});

await visitLayer('planned', ['run', '--density=0.1', '--plan-only'], async (page, data) => {
  equal(data.status, 'planned');
  check(!(await sections(page)).some((id) => ['steps', 'checks'].includes(id)), 'steps or checks of a run that was not');
  await checkCharts(page, 3);
});
await visitLayer('unchecked', ['run', '--density=0.1', '--ignore-data', '--single-phase=fwd', '--tiles-per-ipu=7'], async (page, data) => {
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

// The plan of this layer has a layout of its own for GradA, whose x and y are those of the layer exchanged.
await visit(browser, {tool, work, name: 'own-layout', words: ['run', '--input-size=96', '--output-size=384', '--batch-size=64', '--density=0.3', '--report-tiles']}, async (page, data) => {
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
await browser.close();
console.log(`${checks()} checks of the other pages passed`);
