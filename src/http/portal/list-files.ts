// Lists of the portal as files for a spreadsheet: every item that the page's filter matches, in the fields of the API.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Refusal } from '../../core/refusal.ts';
import { beginFile, type PageRequest } from '../pages/calls.ts';
import { BYTE_ORDER_MARK, csvLine } from '../pages/csv.ts';
import type { JsonObject } from '../read-body.ts';
import { untilTaken } from '../written-in-pieces.ts';
import type { ReplyOf, Visit } from './visit.ts';

type Lists = 'listTransactions' | 'listPayouts' | 'listBalanceEntries';
type Item<List extends Lists> = ReplyOf<List>['data'][number];
type Cell = string | number | null | undefined;

export type ListFile = {
  /** With `:id` where a part of it names something. */
  readonly path: `/${string}.csv`;
  /** The page that shows the same list. */
  readonly under: string;
  /** What its name begins with. */
  readonly name: (visit: Visit) => string;
  readonly heads: readonly string[];
  /** The next lines, and after which item others follow. @param after null: the first */
  readonly lines: (visit: Visit, after: string | null) => Promise<{ readonly text: string; readonly after: string | null }>;
};

/**
 * A list as a file.
 * @param of.filter which items, in the fields of the operation; refuses where there is no such list
 * @param of.columns fields of the operation's answer, or a head and what stands under it
 * @param of.idOf what `starting_after` calls an item
 */
export function listFile<List extends Lists>(
  list: List,
  of: Pick<ListFile, 'path' | 'under' | 'name'> & {
    readonly filter: (visit: Visit) => JsonObject;
    readonly columns: readonly ((keyof Item<List> & string) | readonly [head: string, of: (item: Item<List>) => Cell])[];
    readonly idOf: (item: Item<List>) => string;
  },
): ListFile {
  const { filter, columns, idOf } = of;
  const lineOf = (item: Item<List>): string =>
    csvLine(columns.map((column) => (typeof column === 'string' ? (item[column] as Cell) : column[1](item))));
  return {
    ...of,
    heads: columns.map((column) => (typeof column === 'string' ? column : column[0])),
    async lines(visit, after) {
      const asked = { ...filter(visit), limit: PAGE };
      const { data, has_more: hasMore } =
        after === null ? await visit.ask(list, asked) : await visit.goOn(list, { ...asked, starting_after: after });
      const items = data as readonly Item<List>[];
      const last = items.at(-1);
      return { text: items.map(lineOf).join(''), after: hasMore && last !== undefined ? idOf(last) : null };
    },
  };
}

const PAGE = 100;
const MOST_AT_ONCE = 20;
const RETRY_AFTER_SECONDS = 5;

/**
 * Makes what answers with a file. It counts as one call of its operation, and a merchant has one at a time. Its first lines are read before anything is
 * written, so that what is refused is a page that says why; where later ones fail, the answer breaks off, and browsers call the download failed.
 */
export function createListFiles(): (call: PageRequest, visit: Visit, file: ListFile) => Promise<void> {
  const merchants = new Set<bigint>();
  return async (call, visit, file) => {
    const { merchantId } = visit.session.caller;
    if (merchants.has(merchantId)) {
      const message = 'Another file is being downloaded: ask for this one when that is done.';
      throw new Refusal('rate_limited', { message, retryAfterSeconds: RETRY_AFTER_SECONDS });
    }
    if (merchants.size >= MOST_AT_ONCE) throw new Refusal('overloaded');
    merchants.add(merchantId);
    try {
      await write(call, visit, file);
    } finally {
      merchants.delete(merchantId);
    }
  };
}

async function write(call: PageRequest, visit: Visit, file: ListFile): Promise<void> {
  const { context, request } = call;
  let { text, after } = await file.lines(visit, null);
  const today = new Date(context.now()).toISOString().slice(0, 10);
  const name = `${file.name(visit)}-${today}.csv`;
  const response = beginFile(call, { type: 'text/csv; charset=utf-8; header=present', name });
  // a server that closes waits for nobody who does not read
  const cut = (): void => breakOff(response);
  context.closing.addEventListener('abort', cut);
  try {
    response.write(BYTE_ORDER_MARK + csvLine(file.heads) + text);
    while (after !== null && request.method !== 'HEAD') {
      await untilTaken(response);
      if (response.destroyed || context.closing.aborted) return cut();
      ({ text, after } = await file.lines(visit, after));
      response.write(text);
    }
    response.end();
  } catch (error) {
    if (!(error instanceof Refusal)) context.report({ requestId: request.id, path: request.url, error }, 'a file broke off');
    cut();
  } finally {
    context.closing.removeEventListener('abort', cut);
  }
}

/** By a reset: to a client of HTTP/1.0, as some proxies are, a connection that merely ends is the end of a whole file (RFC 9112 §6.3). */
function breakOff(response: ServerResponse): void {
  const reset = (socket: Socket): void => void socket.resetAndDestroy();
  // answers before it on its connection are given first
  if (response.socket === null) response.once('socket', reset);
  else reset(response.socket);
  response.destroy();
}
