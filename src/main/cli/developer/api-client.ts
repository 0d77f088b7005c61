// Calls of a command to the API, as a merchant's own program would make them, with failures as clear sentences.
import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailed } from '../output.ts';

export type Body = Readonly<Record<string, unknown>>;

/** The API answered, and refused. */
export class CallRefused extends CommandFailed {
  readonly status: number;
  readonly retryAfterSeconds: number;
  constructor(path: string, answer: Response, said: { readonly error: string; readonly message: string }) {
    super(`${path} answered ${answer.status} ${said.error}: ${said.message}`, said.error);
    this.status = answer.status;
    this.retryAfterSeconds = Number(answer.headers.get('retry-after') ?? Number.NaN);
  }
}

/** How often a server that is busy for a moment is asked again, and after how many seconds at most. */
const TRIES = 5;
const LONGEST_WAIT_SECONDS = 5;

/** The address of an operation at this server. */
export function addressOf(base: string, path: string): URL {
  return new URL(base.replace(/\/+$/, '') + path);
}

/** @throws CommandFailed when no server answers */
export async function send(base: string, path: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(addressOf(base, path), { method: 'POST', ...request });
  } catch (error) {
    const { cause } = error as { cause?: { code?: string; message?: string } };
    // a port that fetch calls nobody at has no code, only a sentence
    const why = cause?.code ?? cause?.message ?? (error as Error).message;
    throw new CommandFailed(
      `no server answers at ${base} (${why}): start the service with "npm start", or name it with --url`,
      'unreachable',
    );
  }
}

/** Why the API refused. */
export async function refusalIn(path: string, answer: Response): Promise<CallRefused> {
  const text = await answer.text();
  const { error = '', message = text.slice(0, 200) } = (parsed(text) ?? {}) as { error?: string; message?: string };
  return new CallRefused(path, answer, { error, message });
}

/** Calls an operation; one that is refused because the server is busy for a moment is called again. @throws CommandFailed, CallRefused */
export async function post<T>(base: string, path: string, body: Body, headers: Record<string, string> = {}): Promise<T> {
  for (let tries = 1; ; tries++) {
    const sent = { 'content-type': 'application/json', ...headers };
    const answer = await send(base, path, { headers: sent, body: JSON.stringify(body) });
    if (answer.ok) {
      const value = parsed(await answer.text());
      if (value !== null) return value as T;
      throw new CommandFailed(`${path} answered ${answer.status} without JSON: is ${base} the address of the API?`);
    }
    const refused = await refusalIn(path, answer);
    const isBusy = refused.status === 503 && refused.retryAfterSeconds <= LONGEST_WAIT_SECONDS;
    if (!isBusy || tries === TRIES) throw refused;
    await delay(refused.retryAfterSeconds * 1000);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
