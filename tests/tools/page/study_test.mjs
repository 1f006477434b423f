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
  '--matmul-options={"metaInfoBucketOversizeProportion": 0.02, "bucketConfidence": 0}'], async (page, data) => {
  check(data.buckets.spilled_blocks > 0, 'nothing spilled');
  const rows = await rowsOf(page, 'Buckets');
  equal(rows[2][1], String(data.buckets.spilled_blocks));
  const ways = await rowsOf(page, 'Propagation');
  equal(ways.map((row) => Number(row[1])), data.passes.map((p) => p.phases.find((f) => f.phase === 'propagate')?.steps ?? 0));
  await checkCharts(page, 10);
});
await browser.close();
console.log(`${checks()} checks of the other pages passed`);
