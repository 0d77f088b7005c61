// Asks name servers for the addresses of a name one after the other, in their order, as programs of the machine do (resolver(5)): the first that
// can say is believed. Each is asked by a c-ares resolver that is made for this name. One that is kept learns from all names, so a merchant's slow
// one changes which server is asked for those of others, and for how long; and one with several servers takes SERVFAIL for the answer.
import { Resolver } from 'node:dns/promises';

/** After this long the next name server is asked too; the one before may still answer. */
const NEXT_AFTER_MS = 2_000;
/** The same where one said nothing the last time that it was asked, whatever the name. */
const NEXT_AFTER_SILENT_MS = 100;
/** A question may be lost: it is asked again after 2 seconds, and given up 4 seconds later. */
const ASKED = { timeout: NEXT_AFTER_MS, tries: 2 };
/** What says that a name has no address of this family, or does not exist. */
const NONE = new Set(['ENODATA', 'ENOTFOUND']);
/** What does not come from a name server. */
const UNSAID = new Set(['ETIMEOUT', 'ECONNREFUSED', 'ECANCELLED', 'EBADNAME']);
/** Reached by an interface, which Node does not name. */
const LINK_LOCAL = /^fe[89ab]/i;

/** The addresses of one family, or why there are none. */
export type Answer = readonly string[] | NodeJS.ErrnoException;
export type Asked = {
  readonly four: Promise<Answer>;
  readonly six: Promise<Answer>;
  /** Waits for nothing more. */
  end(): void;
};
type Server = { readonly address: string; resolver(): Resolver };
/** Asks for the addresses of one family. */
type Question = (resolver: Resolver) => Promise<string[]>;

/** Whether it says that there are none. */
export const saysNone = (answer: Answer): boolean => isError(answer) && NONE.has(answer.code ?? '');
/** Whether there are no addresses. */
export const isError = (answer: Answer): answer is NodeJS.ErrnoException => answer instanceof Error;

/** Who has an address is believed whatever others say, who has none only where all before cannot say. @returns null: not yet */
function believed(answers: readonly (Answer | undefined)[], servers: number): Answer | null {
  const found = answers.find((answer) => answer !== undefined && !isError(answer));
  if (found !== undefined) return found;
  for (let place = 0; place < servers; place++) {
    const answer = answers[place];
    if (answer === undefined) return null;
    if (saysNone(answer)) return answer;
  }
  return answers[0] ?? null;
}

/** @param fixed default: the name servers that the machine has when a name is asked for */
export function nameServers(fixed?: readonly string[]): (name: string) => Asked {
  const silent = new Set<string>();
  /** When each said something last, by a steady clock. */
  const spokeAt = new Map<string, number>();

  /** What one of the servers says to a question, to be believed as described above. */
  function answerOf(servers: readonly Server[], question: Question, over: AbortSignal): Promise<Answer> {
    return new Promise((resolve) => {
      const answers: Answer[] = [];
      let [begun, isOver] = [0, false];
      let timer: NodeJS.Timeout | undefined;
      function believe(answer: Answer): void {
        isOver = true;
        clearTimeout(timer);
        resolve(answer);
      }
      function hear(place: number, address: string, answer: Answer): void {
        if (!isError(answer) || !UNSAID.has(answer.code ?? '')) {
          spokeAt.set(address, performance.now());
          silent.delete(address);
        }
        if (isOver) return;
        answers[place] = answer;
        const final = believed(answers, servers.length);
        if (final !== null) believe(final);
        else if (place === begun - 1 && !saysNone(answer)) begin();
      }
      function begin(): void {
        clearTimeout(timer);
        const [place, server] = [begun, servers[begun]];
        if (server === undefined || isOver || over.aborted) return;
        begun += 1;
        const { address } = server;
        const at = performance.now();
        const next = (): void => {
          if ((spokeAt.get(address) ?? Number.NEGATIVE_INFINITY) < at) silent.add(address);
          begin();
        };
        timer = setTimeout(next, silent.has(address) ? NEXT_AFTER_SILENT_MS : NEXT_AFTER_MS);
        question(server.resolver()).then(
          (addresses) => hear(place, address, addresses),
          (error: Error) => hear(place, address, error),
        );
      }
      begin();
    });
  }

  return (name) => {
    const over = new AbortController();
    const servers = serversFor(fixed, over.signal);
    return {
      four: answerOf(servers, (resolver) => resolver.resolve4(name), over.signal),
      six: answerOf(servers, (resolver) => resolver.resolve6(name), over.signal),
      end: () => over.abort(),
    };
  };
}

function serversFor(fixed: readonly string[] | undefined, over: AbortSignal): readonly Server[] {
  const own = new Resolver(ASKED);
  const isOwn = (address: string, { length }: readonly string[]): boolean =>
    fixed === undefined && (length === 1 || LINK_LOCAL.test(address));
  return (fixed ?? own.getServers()).map((address, _, all) => {
    let made: Resolver | null = null;
    function make(): Resolver {
      const resolver = isOwn(address, all) ? own : new Resolver(ASKED);
      if (resolver !== own) resolver.setServers([address]);
      over.addEventListener('abort', () => resolver.cancel(), { once: true });
      return resolver;
    }
    return {
      address,
      resolver: () => {
        made ??= make();
        return made;
      },
    };
  });
}
