// A way to the database that breaks in mid-commit, as a failover does: the commit never arrives, or it was made and nobody was told.
import { once as event } from 'node:events';
import { createServer, connect as openSocket, type Socket } from 'node:net';

/** A commit that lies on its way: who asks for it, and by the names of its statements what it has done. */
export type Commit = { readonly application: string; readonly statements: readonly string[] };
/** `lost`: the connection breaks before the server has it. `unanswered`: the server has it, and its answer does not arrive. */
export type Cut = 'lost' | 'unanswered';

/** @param decide asked for each commit; null lets it pass */
export async function openCommitRelay(url: string, decide: (commit: Commit) => Cut | null) {
  const target = new URL(url);
  const path = `${target.searchParams.get('host')}/.s.PGSQL.${target.searchParams.get('port') ?? (target.port || '5432')}`;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = openSocket(path);
    let isUnanswered = false;
    const reader = readFrontend((commit) => decide(commit));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    near.on('data', (bytes: Buffer) => {
      const cut = reader(bytes);
      if (cut === 'lost') return near.destroy();
      isUnanswered ||= cut === 'unanswered';
      return far.write(bytes);
    });
    // the answer says that it is done
    far.on('data', (bytes: Buffer) => (isUnanswered ? near.destroy() : near.write(bytes)));
  });
  server.listen(0, '127.0.0.1');
  await event(server, 'listening');
  const relayed = new URL(url);
  relayed.hostname = '127.0.0.1';
  relayed.port = String((server.address() as { port: number }).port);
  relayed.searchParams.delete('host');
  relayed.searchParams.delete('port');
  return {
    url: relayed.href,
    close(): void {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Reads what a client sends (PostgreSQL's protocol 3): a message without a type first, then a type, a length and a body each time. */
function readFrontend(decide: (commit: Commit) => Cut | null): (bytes: Buffer) => Cut | null {
  let rest = Buffer.alloc(0);
  let application: string | null = null;
  let statements: string[] = [];
  let isOpen = false;
  const text = (body: Buffer, from = 0): string => body.toString('utf8', from, Math.max(from, body.indexOf(0, from)));

  function message(type: string, body: Buffer): Cut | null {
    // of a bind the portal's name comes first, and is empty
    if (type === 'B') statements.push(text(body, body.indexOf(0) + 1));
    if (type === 'Q' && /^begin\b/.test(text(body))) {
      isOpen = true;
      statements = [];
    }
    // outside of a transaction each statement commits by itself
    const ends = type === 'Q' ? /^(commit|rollback)$/.test(text(body)) : type === 'S' && !isOpen;
    if (!ends) return null;
    const done = statements;
    statements = [];
    isOpen = false;
    return done.length > 0 && text(body) !== 'rollback' ? decide({ application: application ?? '', statements: done }) : null;
  }
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    let cut: Cut | null = null;
    for (;;) {
      const head = application === null ? 0 : 1;
      if (rest.length < head + 4) return cut;
      const end = head + rest.readInt32BE(head);
      if (rest.length < end) return cut;
      const body = rest.subarray(head + 4, end);
      if (application === null) application = /application_name\0([^\0]*)/.exec(body.toString('utf8'))?.[1] ?? '';
      else cut ??= message(String.fromCharCode(rest[0] as number), body);
      rest = rest.subarray(end);
    }
  };
}
