// Calls of merchants and of the sandbox's controls while everything behind them may be killed: whoever gets no answer asks again, as a
// merchant's server does, with the same key.
import { setTimeout as delay } from 'node:timers/promises';

export type Json = Record<string, unknown>;
/** Status 0: no answer. */
export type Answer = { readonly status: number; readonly json: Json };

/** How long a service may be away before a call that is sent again and again counts as failed. */
const PATIENCE_MS = 120_000;

export async function post(url: string, body: object): Promise<Answer> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    return { status: answer.status, json: (await answer.json()) as Json };
  } catch {
    return { status: 0, json: {} };
  }
}

/** Whether the answer says nothing about what was asked for. */
const saysNothing = ({ status, json }: Answer): boolean =>
  status === 0 || (status >= 500 && !NODE_AWAY.has(String(json.error))) || json.error === 'request_in_progress';
const NODE_AWAY: ReadonlySet<string> = new Set(['currency_unavailable', 'lightning_unavailable']);

async function insist(what: string, call: () => Promise<Answer>): Promise<Answer> {
  let last: Answer = { status: 0, json: {} };
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await delay(100)) {
    last = await call();
    if (!saysNothing(last)) return last;
  }
  throw new Error(`${what} has no answer: ${last.status} ${JSON.stringify(last.json)}`);
}

/** Asks a control until it answers. What it does may then have been done twice: whoever asks looks at the outside world. */
export async function control(base: string, name: string, body: object): Promise<Answer> {
  return insist(`/sandbox/${name} ${JSON.stringify(body)}`, () => post(`${base}/sandbox/${name}`, body));
}

/** A merchant who signs in by itself, and again when the clock has moved. */
export function createCaller(base: () => string, username: string, password: string) {
  let tokens: Json = {};
  let signingIn: Promise<void> | null = null;
  async function signIn(): Promise<void> {
    if (tokens.refresh_token !== undefined) {
      const refreshed = await insist('/auth_refresh', () => post(`${base()}/auth_refresh`, tokens));
      tokens = refreshed.json;
      if (refreshed.status === 200) return;
    }
    const { status, json } = await insist('/auth', () => post(`${base()}/auth`, { username, password }));
    if (status !== 200) throw new Error(`/auth answered ${status} ${JSON.stringify(json)}`);
    tokens = json;
  }
  async function once(path: string, body: object): Promise<Answer> {
    const { access_token } = tokens;
    const answer = await post(base() + path, { access_token, ...body });
    if (answer.status !== 401) return answer;
    // two calls at once sign in once
    if (tokens.access_token === access_token)
      signingIn ??= signIn().finally(() => {
        signingIn = null;
      });
    await signingIn;
    return post(base() + path, { access_token: tokens.access_token, ...body });
  }
  return {
    /** Asks until there is an answer, whatever it says. A write needs a key in its body. */
    ask: (path: string, body: object = {}): Promise<Answer> => insist(path, () => once(path, body)),
    /** As `ask`, where only 200 is right. */
    async get(path: string, body: object = {}): Promise<Json> {
      const { status, json } = await insist(path, () => once(path, body));
      if (status !== 200) throw new Error(`${path} ${JSON.stringify(body)} answered ${status} ${JSON.stringify(json)}`);
      return json;
    },
  };
}
export type Caller = ReturnType<typeof createCaller>;
