// The bank of the sandbox: a small HTTP interface on loopback. Its answers are not trusted more than those of any other bank.
import { request } from 'undici';
import { type BankFile, type BankPort, type BankReport, BankTrouble } from '../../core/ach/bank-port.ts';

const ANSWER_WITHIN_MS = 5_000;
const MOST_BYTES = 16 * 1024 * 1024;
type Method = 'GET' | 'PUT' | 'DELETE';
const NAME = /^\d{4}-\d\d-\d\d-[A-Z0-9]$/;
const HASH = /^[0-9a-f]{64}$/;

/** @param where the address and password of the sandbox's server, asked before each call: it may be started again elsewhere */
export function sandboxBank(where: () => Promise<{ readonly url: string; readonly secret: string }>): BankPort {
  async function call(method: Method, path: string, body?: Uint8Array): Promise<Record<string, unknown>> {
    const text = await callText(method, path, body);
    try {
      return JSON.parse(text) as Record<string, unknown>;
    } catch (error) {
      throw new BankTrouble((error as Error).message, { cause: error });
    }
  }
  async function callText(method: Method, path: string, body?: Uint8Array): Promise<string> {
    try {
      const { url, secret } = await where();
      const authorization = `Basic ${Buffer.from(`bursar:${secret}`).toString('base64')}`;
      // not the global fetch: that is a second library, of 7 MB in the memory of a worker at rest
      const answer = await request(new URL(`/bank/${path}`, url), {
        method,
        headers: { authorization },
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        body: body ?? null,
      });
      const text = await answer.body.text();
      if (answer.statusCode !== 200) throw new BankTrouble(`it answered ${answer.statusCode}`);
      if (text.length > MOST_BYTES) throw new BankTrouble('its answer is too long');
      return text;
    } catch (error) {
      throw error instanceof BankTrouble ? error : new BankTrouble((error as Error).message, { cause: error });
    }
  }
  const pathOf = ({ name, sha256 }: Pick<BankFile, 'name' | 'sha256'>): string =>
    `files/${name}?sha256=${Buffer.from(sha256).toString('hex')}`;
  return {
    async handOver(file) {
      const said = await call('PUT', pathOf(file), file.bytes);
      if (said.state === 'accepted' || said.state === 'duplicate') return { state: said.state };
      return refused(said);
    },
    async ask(file) {
      const said = await call('GET', pathOf(file));
      if (said.state === 'accepted' || said.state === 'never') return { state: said.state };
      return refused(said);
    },
    async news() {
      const { cut_off_ms: cutOffMs, reports } = await call('GET', 'reports');
      if ((cutOffMs !== null && typeof cutOffMs !== 'number') || !Array.isArray(reports)) throw unreadable();
      return { cutOffMs, reports: reports.map(reportOf) };
    },
    isWitness: true,
    forgets: async () => [],
    async had() {
      const { files } = await call('GET', 'files');
      if (!Array.isArray(files)) throw unreadable();
      return files.map(fileOf);
    },
    async contentOf(file) {
      return new TextEncoder().encode(await callText('GET', `contents/${file.name}?${pathOf(file).split('?')[1]}`));
    },
    async acknowledge(reportId) {
      await call('DELETE', `reports/${encodeURIComponent(reportId)}`);
    },
  };
}

const unreadable = (): BankTrouble => new BankTrouble('its answer cannot be read');

function refused(said: Record<string, unknown>): { readonly state: 'refused'; readonly reason: string } {
  if (said.state !== 'refused' || typeof said.reason !== 'string') throw unreadable();
  return { state: 'refused', reason: said.reason.slice(0, 300) };
}

function fileOf(said: unknown): { readonly name: string; readonly sha256: Uint8Array } {
  const { name, sha256 } = said as Record<string, unknown>;
  if (typeof name !== 'string' || !NAME.test(name) || typeof sha256 !== 'string' || !HASH.test(sha256)) throw unreadable();
  return { name, sha256: Buffer.from(sha256, 'hex') };
}

function reportOf(said: unknown): BankReport {
  const { id, kind, file, reason, content } = said as Record<string, unknown>;
  if (typeof id !== 'string') throw unreadable();
  if (kind === 'nacha' && typeof content === 'string') return { id, kind, content };
  if (kind === 'over' && typeof file === 'string') return { id, kind, file };
  if (kind === 'refused' && typeof file === 'string' && typeof reason === 'string') return { id, kind, file, reason };
  throw unreadable();
}
