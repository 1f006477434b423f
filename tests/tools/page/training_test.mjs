// Opens the page of tessera train in headless Chromium: node training_test.mjs TESSERA CHROMIUM WORK
import {mkdirSync, writeFileSync} from 'node:fs';
import {check, checkCharts, checkTabs, checks, equal, launch, rowsOf, shown, visit} from './browser.mjs';

const [tool, chromium, work] = process.argv.slice(2);
const data = work + '/pictures';
mkdirSync(data, {recursive: true});

// Pictures of 4 x 5 pixels in three classes, as IDX files.
function writePart(name, count) {
  const images = Buffer.alloc(16 + 20 * count), labels = Buffer.alloc(8 + count);
  [0x803, count, 4, 5].forEach((n, i) => images.writeUInt32BE(n, 4 * i));
  [0x801, count].forEach((n, i) => labels.writeUInt32BE(n, 4 * i));
  for (let i = 0; i < count; ++i) {
    labels[8 + i] = i % 3;
    for (let p = 0; p < 20; ++p) images[16 + 20 * i + p] = (p % 3 === i % 3 ? 180 : 30) + (7 * i + p) % 20;
  }
  writeFileSync(`${data}/${name}-images-idx3-ubyte`, images);
  writeFileSync(`${data}/${name}-labels-idx1-ubyte`, labels);
}
writePart('train', 160);
writePart('t10k', 60);

const browser = await launch(chromium, work);
await visit(browser, {tool, work, name: 'training', words: ['train', '--layers=20,30,10', '--data=' + data, '--epochs=4', '--every=3', '--batch-size=16',
  '--density=0.3', '--beside-dense']}, async (page, study) => {
  const rows = await rowsOf(page, 'Figures: Seconds by activity');
  equal(rows.length, 8);
  const last = study.sparse.rewires.length - 1;
  equal((await rowsOf(page, 'Figures: Stored weights of the first layer for each input')).map((row) => row[2]),
    study.sparse.rewires[last].per_input.map(shown));
  await page.locator('#rewire').evaluate((slider) => { slider.value = '0'; slider.dispatchEvent(new Event('input')); });
  equal(await page.locator('output').textContent(), 'first pattern');
  equal((await rowsOf(page, 'Figures: Stored weights of the first layer for each input')).map((row) => row[2]),
    study.sparse.rewires[0].per_input.map(shown));
  check(study.dense.epochs.length === 4, 'the dense run has four epochs');
  await checkCharts(page, 7);
});
await visit(browser, {tool, work, name: 'training on a machine', words: ['train', '--layers=20,30,10', '--data=' + data, '--epochs=1', '--every=3',
  '--batch-size=16', '--density=0.3', '--machine=gc200']}, async (page, study) => {
  const {passes, optimisers, rewire} = study.step_on_machine;
  equal(await page.locator('#machine tbody tr').count(), passes.length + optimisers.length);
  check((await page.locator('#machine').textContent()).replaceAll(',', '').includes(shown(rewire.upload_bytes)), 'the page has the bytes of a rewire');
});
await browser.close();
console.log(`${checks()} checks`);
