// The real `npm start`: a merchant's user asks for a payment in the portal, sees it paid, decides a late one, and pays out; the API is killed meanwhile,
// and the operator looks on.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../cli/run.ts';
import { openBrowser, words } from '../http/portal/browser.ts';
import { until } from '../support/payout-client.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 90_000;
const PASSWORD = 'demo-demo-demo';
const OUTSIDE = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
const { folder, remove } = dataFolderFor();
let service: Service;
let base: string;
let browser: ReturnType<typeof openBrowser>;

async function control(name: string, body: object): Promise<void> {
  const answer = await fetch(`${base}/sandbox/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status !== 200) throw new Error(`/sandbox/${name} answered ${answer.status} ${await answer.text()}`);
}
const idOf = (path: string): string => path.split('/').at(-1) as string;
/** The page once it says so. */
const untilPage = (path: string, said: string): Promise<string> =>
  until(async () => {
    const { text } = await browser.get(path);
    return words(text).includes(said) ? text : null;
  }, `${path} says ${said}`);
async function askFor(amount: string): Promise<string> {
  const asked = await browser.submit('/transactions/new', 'create', { amount, crypto_selected: 'BTC' });
  expect(asked.path).toMatch(/^\/transactions\/txn_/);
  return asked.path;
}
const balance = async (): Promise<string> =>
  words((await browser.get('/balances')).text).match(/Bitcoin ([0-9.]+) BTC/)?.[1] ?? '';

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  base = await service.ready;
  browser = openBrowser(base);
  await browser.post('/sign-in', { username: 'demo', password: PASSWORD });
}, TIMEOUT);
afterAll(async () => {
  await service?.stop();
  remove();
}, TIMEOUT);

test('what is asked for on a page is paid, and stands in the balance with the entry that explains it', {
  timeout: TIMEOUT,
}, async () => {
  const path = await askFor('300.00');
  await control('pay', { transaction_id: idOf(path) });
  await untilPage(path, 'Confirming');
  await control('mine', { currency: 'BTC', blocks: 3 });
  const paid = await untilPage(path, 'Paid');
  const amount = /Credited to your balance ([0-9.]+) BTC/.exec(words(paid))?.[1];
  expect(await balance()).toBe(amount);
  expect(words((await browser.get('/balances/BTC')).text)).toContain(`deposit ${amount} BTC ${amount} BTC ${idOf(path)}`);
});

test('a payment that came after a cancel is accepted on its page', { timeout: TIMEOUT }, async () => {
  const path = await askFor('40.00');
  await browser.submit(path, 'cancel');
  await control('pay', { transaction_id: idOf(path) });
  await control('mine', { currency: 'BTC', blocks: 3 });
  await untilPage(path, 'Needs review');
  await untilPage('/', 'Needs your attention');
  const before = await balance();
  expect(words((await browser.submit(path, 'accept')).text)).toMatch(/Confirmed|Paid/);
  await untilPage(path, 'Paid');
  expect(Number(await balance())).toBeGreaterThan(Number(before));
});

test('a payout leaves once, though the API is killed and the form is sent again', { timeout: TIMEOUT }, async () => {
  const shown = await browser.get('/payouts/new');
  const hidden = Object.fromEntries(
    [...shown.text.matchAll(/<input type="hidden" name="(do|key|form_token)" value="([^"]+)">/g)].map(([, name, value]) => [
      name,
      value,
    ]),
  );
  const sent = { ...hidden, method: 'bitcoin', amount: '0.001', destination: OUTSIDE, password: PASSWORD };
  const api = service.processOf('api') as number;
  const first = browser.post('/payouts/new', sent).catch(() => null);
  process.kill(api, 'SIGKILL');
  await first;
  let second = null;
  while (second === null) second = await browser.post('/payouts/new', sent).catch(() => null);
  expect(second.path).toMatch(/^\/payouts\/payout_/);
  expect((await browser.post('/payouts/new', sent)).path).toBe(second.path);
  expect((await browser.get('/payouts')).text.match(/href="\/payouts\/payout_/g)).toHaveLength(1);
  await untilPage(second.path, 'Transaction');
  await control('mine', { currency: 'BTC', blocks: 1 });
  await untilPage(second.path, 'Completed');
});

test('the operator opens the console with a code of the command, and sees the merchant', { timeout: TIMEOUT }, async () => {
  const { out } = await runCli(['console', '--json'], { BURSAR_DATA_DIR: folder });
  const operator = openBrowser(base);
  const opened = await operator.post('/ops/sign-in', { code: JSON.parse(out).code });
  expect([opened.status, opened.path]).toEqual([200, '/ops']);
  expect(words((await operator.get('/ops/merchants')).text)).toContain('Demo Shop');
});
