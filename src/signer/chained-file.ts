// A file of the signer's own folder that only grows: one line each, with a hash over itself and the line before. A line is on disk before it is
// answered for. What a power loss left of the last line was never answered and is cut off; any other line that does not fit makes the signer
// refuse. Only the signer's process opens it, under its lock.
import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Network } from '../core/currency.ts';
import { damaged } from '../core/damaged-file.ts';
import { createOnce } from './own-files.ts';

export type ChainedFile = {
  /** Resolves when it is on disk. After a failure that leaves in doubt what is there, nothing can be appended until it is opened again. */
  append(text: string): Promise<void>;
  /** A line by its number, from 1. */
  read(number: number): Promise<string>;
  count(): number;
  /** What was cut off when it was opened, in bytes; 0 = nothing. */
  readonly cutOff: number;
  close(): Promise<void>;
};

export type ChainedFileOptions = {
  readonly network: Network;
  /** What the file is, for whoever opens it. */
  readonly what: string;
  /** What an operator can do where it cannot be read, besides putting it back from a copy. */
  readonly way: string;
  /** Called with every line that is there, in its order; false when it is not the line of this number. */
  readonly take: (text: string, number: number) => boolean;
};

/** The way where it shows what was signed. */
export const KEEP_AND_ASK = 'keep it as it is and ask what was signed since: nothing is signed until it fits again';

/** Nothing of the line is in the file. */
class LineUnwritten extends Error {}

type Line = { readonly offset: number; readonly length: number; readonly hash: string };

const START = '0'.repeat(64);
const HASH_LENGTH = 64;
const CHUNK = 1_048_576;

/** Of the line before and of everything that follows the hash on its own line. */
const hashOf = (before: string, rest: string | Buffer): string => createHash('sha256').update(before).update(rest).digest('hex');
const lineOf = (before: string, text: string): string => `${hashOf(before, ` ${text}`)} ${text}\n`;

/** Makes it where it is missing. Throws DamagedFile when a line in it was changed, or when it belongs to another network */
export async function openChainedFile(path: string, options: ChainedFileOptions): Promise<ChainedFile> {
  const { network, what } = options;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await createOnce(path, lineOf(START, JSON.stringify({ version: 1, what, network })));
  const file = await open(path, 'r+');
  try {
    return await opened(path, file, options);
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function opened(path: string, file: FileHandle, { network, way, take }: ChainedFileOptions): Promise<ChainedFile> {
  const lines: Line[] = [];
  let last = START;
  let end = 0;
  let fault: string | null = null;
  const refuse = (what: string): Error => damaged(path, what, way);
  const { torn } = await eachLine(file, (offset, bytes) => {
    const text = bytes.toString('utf8', HASH_LENGTH + 1);
    const hash = bytes.toString('latin1', 0, HASH_LENGTH);
    if (hash !== hashOf(last, bytes.subarray(HASH_LENGTH))) throw refuse(`the line at byte ${offset} was changed`);
    if (offset === 0) checkHeader(text, network, refuse);
    else {
      const number = lines.length + 1;
      if (!take(text, number)) throw refuse(`the line at byte ${offset} is not number ${number}`);
      lines.push({ offset, length: bytes.length, hash: last });
    }
    last = hash;
    end = offset + bytes.length + 1;
  });
  if (end === 0) throw refuse('it has no first line');
  if (torn > 0) await file.truncate(end);
  // also what an earlier process wrote and could not sync
  await file.sync();

  async function write(text: string): Promise<void> {
    const bytes = Buffer.from(lineOf(last, text));
    const [named, held] = await Promise.all([stat(path), file.stat()]);
    if (named.ino !== held.ino || held.size !== end) throw new Error(`${path} was changed by somebody else`);
    try {
      await writeAll(file, bytes, end);
    } catch (error) {
      // a full disk: what was written of it goes, and the next line may find space again
      await file.truncate(end);
      await file.sync();
      throw new LineUnwritten(`${path} could not be written (${(error as NodeJS.ErrnoException).code})`);
    }
    await file.sync();
    lines.push({ offset: end, length: bytes.length - 1, hash: last });
    last = bytes.toString('latin1', 0, HASH_LENGTH);
    end += bytes.length;
  }
  return {
    cutOff: torn,
    count: () => lines.length,
    async append(text) {
      if (fault !== null) throw new Error(`nothing is signed until the signer is started again: ${fault}`);
      try {
        await write(text);
      } catch (error) {
        // what is on disk is not known: only reading it again tells
        if (!(error instanceof LineUnwritten)) fault = (error as Error).message;
        throw error;
      }
    },
    async read(number) {
      const line = lines[number - 1];
      if (line === undefined) throw new Error(`there is no signature ${number}`);
      const bytes = Buffer.alloc(line.length);
      await file.read(bytes, 0, line.length, line.offset);
      if (bytes.toString('latin1', 0, HASH_LENGTH) !== hashOf(line.hash, bytes.subarray(HASH_LENGTH)))
        throw refuse(`signature ${number} was changed`);
      return bytes.toString('utf8', HASH_LENGTH + 1);
    },
    close: () => file.close(),
  };
}

function checkHeader(text: string, network: Network, refuse: (what: string) => Error): void {
  const header = JSON.parse(text) as { readonly version: unknown; readonly network: unknown };
  if (header.version !== 1) throw refuse(`it is of version ${String(header.version)}`);
  if (header.network !== network) throw refuse(`it is of ${String(header.network)}, and this is ${network}`);
}

async function writeAll(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}

/**
 * Calls `take` with every whole line, without its end. The last one is torn, and not given, where its end is missing or where it has zero
 * bytes, which stand for what never came to the disk.
 */
async function eachLine(file: FileHandle, take: (offset: number, bytes: Buffer) => void): Promise<{ readonly torn: number }> {
  const { size } = await file.stat();
  let offset = 0;
  let rest = Buffer.alloc(0);
  for (let at = 0; at < size; at += CHUNK) {
    const chunk = Buffer.alloc(Math.min(CHUNK, size - at));
    await file.read(chunk, 0, chunk.length, at);
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const line = rest.subarray(0, end);
      if (line.includes(0) && offset + end + 1 === size) return { torn: size - offset };
      take(offset, line);
      offset += end + 1;
      rest = rest.subarray(end + 1);
    }
  }
  return { torn: size - offset };
}
