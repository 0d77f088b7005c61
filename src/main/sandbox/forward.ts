// Forwards the controls that arrive at the API to the sandbox's own process.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Refusal } from '../../core/refusal.ts';
import type { SandboxForward } from '../../http/server-context.ts';
import type { SandboxEndpoint } from './paths.ts';

// not by an import: see http/server.ts
const { Agent, request } = process.getBuiltinModule('node:http');

/** Longer than any control takes: the clock's control gives up earlier. */
const ANSWER_WITHIN_MS = 270_000;
/** A sandbox that ends closes its connections, and the next one is reached over new ones. */
const kept = new Agent({ keepAlive: true });

/**
 * Posts a control's body to the sandbox; its answer is the answer. 503 while it is not there (it is being restarted) or not open yet, and
 * for every caller that still waits when the API closes.
 */
export function sandboxForward(endpoint: () => Promise<SandboxEndpoint>): SandboxForward {
  return async (control, body, closing) => {
    const { url } = await endpoint();
    try {
      const signal = AbortSignal.any([AbortSignal.timeout(ANSWER_WITHIN_MS), closing]);
      const answer = await post(new URL(`/control/${encodeURIComponent(control)}`, url), JSON.stringify(body), signal);
      if (answer.httpStatus !== 503) return answer;
    } catch {}
    const message = 'The sandbox does not answer just now; whether it did what was asked is not known.';
    throw new Refusal('overloaded', { message });
  };
}

async function post(
  url: URL,
  body: string,
  signal: AbortSignal,
): Promise<{ readonly httpStatus: number; readonly json: string }> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const sent = request(url, { method: 'POST', headers, agent: kept, signal });
  sent.end(body);
  const [answer] = (await once(sent, 'response', { signal })) as [IncomingMessage];
  const parts: Buffer[] = [];
  for await (const part of answer) parts.push(part as Buffer);
  return { httpStatus: answer.statusCode ?? 0, json: Buffer.concat(parts).toString('utf8') };
}
