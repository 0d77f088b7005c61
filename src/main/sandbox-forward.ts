// Hands the controls that arrive at the API on to the sandbox's own process. Used by src/main/api.ts, in the sandbox only.
import type { SandboxEndpoint } from './sandbox-place.ts';

/** Longer than any control takes: the clock's gives up before. */
const ANSWER_WITHIN_MS = 270_000;

/** Posts a control's body to the sandbox; what it answers is the answer. While it is not there (it is being started again): 503. */
export function sandboxForward(
  endpoint: () => Promise<SandboxEndpoint>,
): (control: string, body: object) => Promise<{ readonly httpStatus: number; readonly json: string }> {
  return async (control, body) => {
    const { url } = await endpoint();
    try {
      const answer = await fetch(new URL(`/control/${encodeURIComponent(control)}`, url), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
      return { httpStatus: answer.status, json: await answer.text() };
    } catch {
      const message = 'The sandbox does not answer just now; whether it did what was asked is not known.';
      return { httpStatus: 503, json: JSON.stringify({ error: 'overloaded', message }) };
    }
  };
}
