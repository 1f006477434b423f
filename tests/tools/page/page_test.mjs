// Opens the cost report of a real run in headless Chromium: node page_test.mjs TOOL CHROMIUM WORK
// What must hold is thrown as an error; the last line counts the checks.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {createRequire} from 'node:module';
import {mkdirSync} from 'node:fs';
import path from 'node:path';

const [tool, chromium, work] = process.argv.slice(2);
const {chromium: browserType} = createRequire(path.join(work, 'package.json'))('playwright-core');
mkdirSync(work, {recursive: true});
const page_path = path.join(work, 'report.html');
execFileSync(tool, ['--input-size=1024', '--output-size=1024', '--density=0.1', '--batch-size=64', '--quiet', '--html', page_path]);

const browser = await browserType.launch({executablePath: chromium, args: ['--no-sandbox']});
let checks = 0;
const check = (condition, what) => { assert.ok(condition, what); ++checks; };

for (const colorScheme of ['light', 'dark'])
  for (const width of [1280, 390]) {
    const page = await browser.newPage({viewport: {width, height: 900}, colorScheme});
    const complaints = [], requests = [];
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()); });
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('request', (request) => { if (!request.url().startsWith('file:') && !request.url().startsWith('data:')) requests.push(request.url()); });
    await page.goto('file://' + page_path);

    // Keyboard: the first stop skips to the report.
    await page.keyboard.press('Tab');
    check(await page.evaluate(() => document.activeElement.className === 'skip'), 'the first stop is not the skip link');

    const sections = await page.$$eval('main section', (all) => all.map((s) => s.id));
    for (const id of ['summary', 'plan', 'cost', 'runners', 'tiles', 'memory', 'steps', 'imbalance', 'spills', 'checks', 'origin'])
      check(sections.includes(id), `${id} is missing at ${width}`);

    // Every chart has ink, and a table of the same figures under it.
    const charts = await page.$$eval('.chart', (all) => all.map((c) => {
      const canvas = c.querySelector('canvas');
      const pixels = canvas ? canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data : [];
      return {label: c.getAttribute('aria-label'), ink: pixels.some((v) => v !== 0), rows: c.nextElementSibling.querySelectorAll('tbody tr').length};
    }));
    check(charts.length >= 6, `${charts.length} charts`);
    for (const chart of charts) {
      check(chart.ink, `${chart.label} is empty`);
      check(chart.rows > 0, `${chart.label} has no figures`);
    }

    // Nothing sticks out sideways; text is large enough and stands out from its ground.
    check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `the page is wider than ${width}`);
    const smallest = await page.$$eval('p, td, th, li, summary', (all) => Math.min(...all.map((e) => parseFloat(getComputedStyle(e).fontSize))));
    check(smallest >= 12, `text of ${smallest} pixels`);
    const contrast = await page.evaluate(() => {
      const light = (color) => {
        const [r, g, b] = color.match(/[\d.]+/g).slice(0, 3).map((v) => { const c = v / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const style = getComputedStyle(document.body);
      const [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    });
    check(contrast >= 7, `contrast ${contrast} in ${colorScheme}`);

    // Click: another figure on the tile map. Zoom: the time line shows half of its steps.
    const shown = () => page.evaluate(() => tesseraCharts.map((c) => JSON.stringify(c.shown.getOption().series)));
    const before = await shown();
    await page.click('#tiles button:nth-of-type(2)');
    const after = await shown();
    check(before.some((option, i) => option !== after[i]), 'a click on the tile map changed nothing');
    await page.click('#steps button:nth-of-type(1)');
    const end = await page.evaluate(() => tesseraCharts.map((c) => c.shown.getOption().dataZoom?.find((z) => z.type === 'slider')?.end).find((v) => v !== undefined));
    check(end === 50, `zoomed to ${end}`);

    // Keyboard: a table of figures opens with the space bar.
    await page.focus('#cost summary');
    await page.keyboard.press('Space');
    check(await page.$eval('#cost details', (d) => d.open), 'the space bar opens no figures');

    await page.screenshot({path: path.join(work, `report-${colorScheme}-${width}.png`), fullPage: true});
    check(complaints.length === 0, complaints.join('\n'));
    check(requests.length === 0, requests.join('\n'));
    await page.close();
  }
await browser.close();
console.log(`${checks} checks of the report page passed`);
