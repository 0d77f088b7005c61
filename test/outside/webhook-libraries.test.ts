// What is sent is accepted by the libraries that merchants use, none of them ours: Standard Webhooks' own for Node, Python and Go. What was
// changed on the way is refused by each.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { createWebhookSender } from '../../src/outside/webhooks/sender.ts';
import { documentTool } from '../support/document-tools.ts';
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts';

type Given = { readonly secret: string; readonly headers: Record<string, string>; readonly body: string };

const SECRETS = ['whsec_Q7fz6MkFNjMAxNVh4ZVFTqRi21NPvjP+5nSNf4B+Grc=', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='];
const outbound = createOutbound(ANYWHERE);
let receiver: Receiver;
let sent: Omit<Given, 'secret'>;
beforeAll(async () => {
  receiver = await startReceiver();
  const body = JSON.stringify({ id: 'evt_t1', data: { object: { label: 'Bücher für 25 € 🙂' } } });
  const request = { webhook: 'wh_1', merchantId: 1n, url: receiver.url, id: 'evt_t1', body, secrets: SECRETS };
  await createWebhookSender(outbound)({ ...request, signal: new AbortController().signal });
  const [got] = receiver.received;
  sent = { headers: got?.headers as Record<string, string>, body: got?.text ?? '' };
});
afterAll(async () => {
  receiver.close();
  await outbound.close();
});

const libraries = await documentTool('webhook-libraries');
const withNode = async ({ secret, headers, body }: Given): Promise<boolean> => {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
};
const withProgram =
  (name: string) =>
  async (given: Given): Promise<boolean> => {
    const child = spawn(join(libraries.path ?? '', name), { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end(JSON.stringify(given));
    const [code] = await once(child, 'close');
    if (code !== 0 && code !== 1) throw new Error(`${name} ended with ${code}`);
    return code === 0;
  };

describe.each([
  ['Node', withNode, true],
  ['Python', withProgram('check-python'), libraries.path !== null],
  ['Go', withProgram('check-go'), libraries.path !== null],
])('the library for %s', (_language, accepts, isThere) => {
  test.skipIf(!isThere)('accepts it with each secret that is valid', async () => {
    for (const secret of SECRETS) expect(await accepts({ ...sent, secret })).toBe(true);
  });

  test.skipIf(!isThere)('refuses another secret, another body, another id and an old time', async () => {
    const [secret] = SECRETS as [string];
    const { headers, body } = sent;
    const other = SECRETS[1]?.replace('Mf', 'Nf') as string;
    const old = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 600) };
    const wrong = [
      { secret: other, headers, body },
      { secret, headers, body: `${body} ` },
      { secret, headers: { ...headers, 'webhook-id': 'evt_t2' }, body },
      { secret, headers: old, body },
    ];
    for (const one of wrong) expect(await accepts(one)).toBe(false);
  });
});
