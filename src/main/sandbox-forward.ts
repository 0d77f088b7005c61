// Hands the controls that arrive at the API on to the sandbox's own process. Used by src/main/api.ts, in the sandbox only.
import { Refusal } from '../core/refusal.ts';
import type { SandboxForward } from '../http/house.ts';
import type { SandboxEndpoint } from './sandbox-place.ts';

/** Longer than any control takes: the clock's gives up before. */
const ANSWER_WITHIN_MS = 270_000;

/**
 * Posts a control's body to the sandbox; what it answers is the answer. 503 while it is not there (it is being started again) or not open yet,
 * and for whoever still waits when the API closes.
 */
export function sandboxForward(endpoint: () => Promise<SandboxEndpoint>): SandboxForward {
  return async (control, body, closing) => {
    const { url } = await endpoint();
    try {
      const answer = await fetch(new URL(`/control/${encodeURIComponent(control)}`, url), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.any([AbortSignal.timeout(ANSWER_WITHIN_MS), closing]),
      });
      const json = await answer.text();
      if (answer.status !== 503) return { httpStatus: answer.status, json };
    } catch {}
    const message = 'The sandbox does not answer just now; whether it did what was asked is not known.';
    throw new Refusal('overloaded', { message });
  };
}
