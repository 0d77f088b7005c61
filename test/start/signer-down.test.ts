// The signer beside a service under load: when it is killed, nobody notices; when it is frozen, the addresses that are ready are given out,
// then new ones are refused at once with a reason, other currencies go on as long as theirs last, and everything works when it wakes up.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { askCli } from '../cli/run.ts';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

const AT_ONCE = 24;
let service: Service;
let place: ReturnType<typeof dataFolderFor>;
let base: string;
let token: string;
beforeAll(async () => {
  place = dataFolderFor();
  service = startService({ dataFolder: place.folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  base = await service.ready;
  const { json } = await post('/auth', { username: 'demo', password: 'demo-demo-demo' });
  token = json.access_token as string;
});
afterAll(async () => {
  await service?.stop();
  place?.remove();
});

type Answer = { status: number; json: Record<string, unknown>; retryAfter: string | null; ms: number };
async function post(path: string, body: object): Promise<Answer> {
  const began = performance.now();
  const reply = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const json = (await reply.json()) as Record<string, unknown>;
  return { status: reply.status, json, retryAfter: reply.headers.get('retry-after'), ms: performance.now() - began };
}
const create = (currency: string) =>
  post('/create_transaction', { access_token: token, amount: '25.00', crypto_selected: currency });
/** As many as it takes until one is refused, at most so many; some at once. */
async function createMany(currency: string, most: number): Promise<{ made: string[]; refused: Answer[] }> {
  const made: string[] = [];
  const refused: Answer[] = [];
  let left = most;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left-- > 0 && refused.length < AT_ONCE) {
        const answer = await create(currency);
        if (answer.status === 200) made.push(answer.json.wallet_address as string);
        else refused.push(answer);
      }
    }),
  );
  return { made, refused };
}
const problems = async (): Promise<string[]> =>
  ((await (await fetch(`${base}/readyz`)).json()) as { problems: string[] }).problems;
const signerPid = () => eventually('the signer runs', () => service.processOf('signer'));

test('killed while customers come, it is not missed, and no address is given twice', async () => {
  await create('BTC');
  const coming = createMany('BTC', 400);
  for (let n = 0; n < 2; n++) {
    const pid = await signerPid();
    process.kill(pid, 'SIGKILL');
    await eventually('another one runs', () => service.processOf('signer') !== pid);
  }
  const { made, refused } = await coming;
  expect(refused).toEqual([]);
  expect(new Set(made).size).toBe(made.length);
});

test('frozen: what lies ready goes out, then it is refused at once and said everywhere, until it wakes up', async () => {
  await create('LTC');
  await create('BTC');
  const pid = await signerPid();
  process.kill(pid, 'SIGSTOP');
  try {
    const { made, refused } = await createMany('BTC', 4_000);
    expect(made.length).toBeGreaterThanOrEqual(990);
    expect(new Set(made).size).toBe(made.length);
    expect(refused[0]).toMatchObject({
      status: 503,
      retryAfter: '5',
      json: {
        error: 'currency_unavailable',
        message: 'BTC is not available right now: no address is left, and the signer gives out no new ones.',
      },
    });
    const later = await create('BTC');
    expect(later.status).toBe(503);
    expect(later.ms).toBeLessThan(1_000);
    expect((await create('LTC')).status).toBe(200);
    const silent = expect.stringMatching(/^the signer does not answer: (BTC|BTC, LTC) have waited for new addresses since /);
    await eventually('it is said', async () => (await problems()).some((one) => one.startsWith('the signer does not answer')));
    expect(await problems()).toContainEqual(silent);
    const status = await askCli<{ problems: string[] }>(['chain', 'status'], { BURSAR_DATA_DIR: place.folder });
    expect(status.problems).toContainEqual(silent);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await eventually('it goes on', async () => (await create('BTC')).status === 200);
  await eventually('nothing is wrong', async () => !(await problems()).some((one) => one.includes('signer')));
});
