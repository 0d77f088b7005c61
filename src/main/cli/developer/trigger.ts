// `bursar trigger <event…>`: makes real events happen in the sandbox, as a merchant, a customer and a bank would: over the public API and the
// sandbox's controls only.
import type { Command } from 'commander';
import { EVENT_TYPES } from '../../../core/events.ts';
import { CommandFailed, calledWrongly, leaf, print } from '../output.ts';
import { CallRefused, post } from './api-client.ts';
import { streamOnce } from './event-stream.ts';
import { withProfile } from './login.ts';
import { openSession, type Session } from './session.ts';
import { CRYPTO, type Sandbox, STEPS } from './trigger-steps.ts';

type Triggered = {
  readonly event: string;
  readonly event_id: string;
  readonly object: string;
  readonly clock_moved_seconds: number;
};

const HAPPENS_WITHIN_MS = 60_000;
const BLOCK_EVERY_MS = 250;

/**
 * Adds `trigger`, which makes events of the named types happen by the public API and the sandbox's controls; refused where there are no
 * controls.
 */
export function addTriggerCommand(bursar: Command): void {
  withProfile(leaf(bursar, 'trigger <event...>', 'Makes events happen in the sandbox, for real; some move its clock.'))
    .addHelpText('after', `\nEvents:\n${EVENT_TYPES.map((type) => `  ${type}`).join('\n')}`)
    .action(trigger);
}

async function trigger(events: readonly string[], { profile, json }: { profile: string; json?: boolean }): Promise<void> {
  const unknown = events.find((event) => STEPS[event] === undefined);
  if (unknown !== undefined) throw calledWrongly(`event: ${unknown} is not one of ${EVENT_TYPES.join(', ')}`);
  const session = openSession(profile);
  const made: Triggered[] = [];
  for (const event of events) made.push(await triggerOne(session, event));
  const lines = made.map((one) => {
    const moved = one.clock_moved_seconds === 0 ? '' : `  (the sandbox's clock moved by ${one.clock_moved_seconds} seconds)`;
    return `${one.event}  ${one.object}  ${one.event_id}${moved}`;
  });
  print(json, { data: made }, lines);
}

async function triggerOne(session: Session, event: string): Promise<Triggered> {
  let moved = 0;
  async function control<T>(name: string, body: object): Promise<T> {
    const path = `/sandbox/${name}`;
    try {
      return await post<T>(session.url, path, { ...body });
    } catch (error) {
      const isAbsent = error instanceof CallRefused && error.status === 404 && name === 'mine';
      throw isAbsent ? new CommandFailed('trigger works in the sandbox only', 'not_in_sandbox') : error;
    }
  }
  const sandbox: Sandbox = {
    session,
    control,
    async advance(seconds) {
      await control('clock', { advance_seconds: seconds });
      moved += seconds;
    },
    happened: (object, type) => happened(session, control, object, type),
  };
  // refused where there is no sandbox, before anything is created
  await control('mine', { currency: CRYPTO, blocks: 1 });
  const object = await (STEPS[event] as (sandbox: Sandbox) => Promise<string>)(sandbox);
  const eventId = await sandbox.happened(object, event);
  return { event, event_id: eventId, object, clock_moved_seconds: moved };
}

async function happened(session: Session, control: Sandbox['control'], object: string, type: string): Promise<string> {
  const stop = new AbortController();
  const until = performance.now() + HAPPENS_WITHIN_MS;
  let trouble: unknown = null;
  async function mine(): Promise<void> {
    try {
      for (;;) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, BLOCK_EVERY_MS);
          stop.signal.addEventListener('abort', () => {
            clearTimeout(timer);
            resolve();
          });
        });
        if (stop.signal.aborted) return;
        if (performance.now() > until)
          throw new CommandFailed(`${type} of ${object} did not happen within a minute`, 'timed_out');
        await control('mine', { currency: CRYPTO, blocks: 1 });
      }
    } catch (error) {
      trouble = error;
      stop.abort();
    }
  }
  const mining = mine();
  try {
    return await told(session, { object, type }, stop.signal);
  } catch (error) {
    throw trouble ?? error;
  } finally {
    stop.abort();
    await mining;
  }
}

/** The identifier of the object's first event of this type; waits for it. */
async function told(session: Session, { object, type }: { object: string; type: string }, stop: AbortSignal): Promise<string> {
  while (!stop.aborted) {
    try {
      for await (const { id, data, event } of streamOnce(session, { events: [type], object }, '0', stop))
        if (data !== null && event === type) return id;
    } catch (error) {
      if (!(error instanceof CallRefused) || error.code !== 'token_expired') throw error;
    }
    if (!stop.aborted) await session.renew();
  }
  throw new CommandFailed(`${type} of ${object} did not happen`);
}
