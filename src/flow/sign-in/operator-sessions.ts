// The operator's sign-in to the console: a code that a command on the service's machine makes, and a session that begins with it. Both are sealed by the
// key of the data folder, so whoever has them has been on that machine (or was given the code in its five minutes); there is no password to guess, and
// nothing in the database that a copy of it would give away.
import { createHash } from 'node:crypto';
import type { Ports } from '../../core/ports.ts';
import { Refusal } from '../../core/refusal.ts';

type OperatorContext = { readonly ports: Pick<Ports, 'clock' | 'rng' | 'seals'> };

export type OperatorSession = {
  /** Forms of this session carry it. */
  readonly formToken: string;
  /** What the browser holds from now on. */
  readonly token: string;
};

export const CODE_MINUTES = 5;
const CODE_MS = CODE_MINUTES * 60_000;
const IDLE_MS = 15 * 60_000;
const LONGEST_MS = 12 * 3_600_000;
/** How far our clocks may be apart; one that was set back by more ends what was made before. */
const FUTURE_MS = 60_000;

/** Ways in which the parts of a code and a session are sealed: neither can be taken for the other. */
type Kind = 'operator code' | 'operator session';

/** Makes a code that opens one session within {@link CODE_MINUTES} minutes. */
export function makeOperatorCode(ctx: OperatorContext): string {
  return written(ctx, 'operator code', [ctx.ports.clock.now().toString(36), nonce(ctx)]);
}

/** What the codes and sessions of one process are known by; a code opens one session in each process. */
export function createOperatorSignIn(ctx: OperatorContext) {
  const used = new Map<string, number>();

  return {
    /** @throws Refusal invalid_credentials: no code of this service, an old one, or one that was used */
    open(code: string): OperatorSession {
      const nowMs = ctx.ports.clock.now();
      for (const [one, atMs] of used) if (nowMs - atMs > CODE_MS + FUTURE_MS) used.delete(one);
      const [madeAt, once] = read(ctx, 'operator code', code, 2) ?? [];
      const isYoung = madeAt !== undefined && isWithin(nowMs - Number.parseInt(madeAt, 36), CODE_MS);
      if (once === undefined || !isYoung || used.has(once))
        throw new Refusal('invalid_credentials', {
          message: `This is no code of this service, it is older than ${CODE_MINUTES} minutes, or it was used.`,
          param: 'code',
        });
      used.set(once, nowMs);
      return sessionOf(ctx, nowMs, nonce(ctx));
    },

    /** The session that a browser shows, renewed; null when it is none, or over. */
    read(token: string): OperatorSession | null {
      const [begunAt, seenAt, once] = read(ctx, 'operator session', token, 3) ?? [];
      if (begunAt === undefined || seenAt === undefined || once === undefined) return null;
      const nowMs = ctx.ports.clock.now();
      const begunMs = Number.parseInt(begunAt, 36);
      const isOpen = isWithin(nowMs - Number.parseInt(seenAt, 36), IDLE_MS) && isWithin(nowMs - begunMs, LONGEST_MS);
      return isOpen ? sessionOf(ctx, begunMs, once) : null;
    },
  };
}

const isWithin = (ageMs: number, longestMs: number): boolean => ageMs >= -FUTURE_MS && ageMs < longestMs;

function sessionOf(ctx: OperatorContext, begunMs: number, once: string): OperatorSession {
  const parts = [begunMs.toString(36), ctx.ports.clock.now().toString(36), once];
  const formToken = createHash('sha256').update(`console form ${once}`).digest('base64url');
  return { token: written(ctx, 'operator session', parts), formToken };
}

const nonce = ({ ports: { rng } }: OperatorContext): string => Buffer.from(rng.bytes(16)).toString('base64url');

function written({ ports: { seals } }: OperatorContext, kind: Kind, parts: readonly string[]): string {
  return [...parts, Buffer.from(seals.seal([kind, ...parts])).toString('base64url')].join('.');
}

function read({ ports: { seals } }: OperatorContext, kind: Kind, text: string, count: number): readonly string[] | null {
  const parts = text.split('.');
  const seal = parts.pop();
  if (seal === undefined || parts.length !== count || text.length > 200) return null;
  return seals.fits([kind, ...parts], Buffer.from(seal, 'base64url')) ? parts : null;
}
