// The script of the checkout page where connections are bad: it never leaves something to pay with on a page that the server is silent to. The browser around
// it is simulated, its clocks too.
import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { EN } from '../../src/http/checkout/words/en.ts';

const SCRIPT = readFileSync(new URL('../../src/http/checkout/browser/checkout.js', import.meta.url), 'utf8');
const PAYABLE = '<div data-over hidden></div><div data-payable><time data-until="900000"></time></div>';
const OVER = 'The time is over. Do not pay now.';
const change = (screen: string, now: number) => ({ screen, said: screen, now, html: screen === 'pay' ? PAYABLE : screen });

type Listener = (event: { data: string; persisted?: boolean }) => void;

class Stream {
  static readonly CLOSED = 2;
  readyState = 0;
  readonly listeners = new Map<string, Listener>();
  addEventListener(name: string, listener: Listener) {
    this.listeners.set(name, listener);
  }
  close() {
    this.readyState = Stream.CLOSED;
  }
  tell(name: string, what: object) {
    this.listeners.get(name)?.({ data: JSON.stringify(what) });
  }
}

/** A browser that has just loaded a page to pay on, 15 minutes before its end; what its server answers when it asks for the page again. */
function openPage(page: () => { screen: string; now: number } | 'silence') {
  const clocks = { steady: 1_000, wall: 5_000_000 };
  const timers: { at: number; every: number | null; run: () => void }[] = [];
  const streams: Stream[] = [];
  const ofWindow = new Map<string, Listener>();
  let reloads = 0;
  let isGivenUp = false;
  const element = (more: object = {}) => ({ hidden: false, textContent: '', classList: { toggle: () => undefined }, ...more });
  const until = element({ dataset: { until: '900000' } });
  const [over, payable, said, connection] = [element({ hidden: true, textContent: OVER }), element(), element(), element()];
  const parts: Readonly<Record<string, object>> = { '[data-until]': until, '[data-over]': over, '[data-payable]': payable };
  const screen = {
    ...{ innerHTML: PAYABLE, dataset: { screen: 'pay' }, addEventListener: () => undefined },
    querySelector: (selector: string) => (screen.innerHTML === PAYABLE ? (parts[selector] ?? null) : null),
  };
  const elements: Readonly<Record<string, object>> = { screen, said, connection };
  const globals = {
    URL,
    document: {
      body: { dataset: { now: '0', events: 'token/events', words: JSON.stringify(EN.browser) } },
      getElementById: (id: string) => elements[id],
      querySelector: () => null,
    },
    location: { href: 'https://pay.example.com/pay/token', reload: () => (reloads += 1) },
    performance: { now: () => clocks.steady },
    Date: { now: () => clocks.wall },
    setInterval: (run: () => void, every: number) => timers.push({ at: clocks.steady + every, every, run }),
    setTimeout: (run: () => void, ms: number) => timers.push({ at: clocks.steady + ms, every: null, run }),
    addEventListener: (name: string, listener: Listener) => ofWindow.set(name, listener),
    EventSource: class extends Stream {
      constructor() {
        super();
        streams.push(this);
      }
    },
    AbortSignal: { timeout: () => null },
    fetch: async () => {
      const there = page();
      isGivenUp = there === 'silence';
      if (there === 'silence') throw new Error('no answer');
      return { ok: true, text: async () => JSON.stringify(change(there.screen, there.now)) };
    },
    DOMParser: class {
      parseFromString(text: string) {
        const { html, screen: name, said: words, now } = JSON.parse(text);
        const found: Record<string, object> = {
          screen: { innerHTML: html, dataset: { screen: name } },
          said: { textContent: words },
        };
        return { body: { dataset: { now } }, getElementById: (id: string) => found[id] };
      }
    },
  };
  runInNewContext(SCRIPT, globals);
  return {
    ...{ said, connection, streams },
    shows: () => screen.dataset.screen,
    isPayable: () => screen.innerHTML === PAYABLE && !payable.hidden,
    left: () => until.textContent,
    reloads: () => reloads,
    isGivenUp: () => isGivenUp,
    comeBack: () => ofWindow.get('pageshow')?.({ data: '', persisted: true }),
    sleep: (ms: number) => (clocks.wall += ms),
    /** Time goes by, and what is due happens. */
    async pass(ms: number) {
      for (const end = clocks.steady + ms; clocks.steady < end; ) {
        clocks.steady += 250;
        clocks.wall += 250;
        for (const timer of timers.filter(({ at }) => at <= clocks.steady)) {
          if (timer.every === null) timers.splice(timers.indexOf(timer), 1);
          else timer.at += timer.every;
          timer.run();
        }
        // what was asked for is answered
        await new Promise(setImmediate);
      }
    },
  };
}

test('a stream that a proxy keeps to itself: the page asks again by itself', async () => {
  const page = openPage(() => ({ screen: 'seen', now: 6_000 }));
  await page.pass(4_000);
  expect(page.shows()).toBe('pay');
  await page.pass(2_500);
  expect(page.shows()).toBe('seen');
});

test('a stream that falls silent is given up, and one that lives is not', async () => {
  const page = openPage(() => ({ screen: 'seen', now: 60_000 }));
  const [stream] = page.streams;
  stream?.tell('change', change('pay', 0));
  for (const now of [10_000, 20_000, 30_000]) {
    await page.pass(10_000);
    stream?.tell('beat', { now });
  }
  expect([page.shows(), page.streams.length]).toEqual(['pay', 1]);
  await page.pass(26_000);
  expect(page.shows()).toBe('seen');
});

test('without a connection nothing is left to pay with once the time is over', async () => {
  const page = openPage(() => 'silence');
  page.streams[0]?.tell('change', change('pay', 890_000));
  await page.pass(9_000);
  expect([page.isPayable(), page.left()]).toEqual([true, 'for 0:01']);
  await page.pass(1_500);
  expect([page.isPayable(), page.said.textContent]).toEqual([false, OVER]);
  await page.pass(60_000);
  expect([page.isPayable(), page.isGivenUp(), page.connection.hidden]).toEqual([false, true, false]);
});

test('a machine that slept counts the time that it has slept, though its steady clock stood still, and asks at once', async () => {
  const page = openPage(() => ({ screen: 'expired', now: 900_000 }));
  page.streams[0]?.tell('change', change('pay', 0));
  page.sleep(1_200_000);
  await page.pass(500);
  expect(page.isPayable()).toBe(false);
  await page.pass(1_000);
  expect(page.shows()).toBe('expired');
});

test('a clock that was only set takes nothing to pay with away for longer than the next answer', async () => {
  const page = openPage(() => ({ screen: 'pay', now: 2_000 }));
  page.streams[0]?.tell('change', change('pay', 0));
  page.sleep(3_600_000);
  await page.pass(1_500);
  expect([page.isPayable(), page.said.textContent]).toEqual([true, 'pay']);
  expect(page.left()).toMatch(/^for 14:5\d$/);
});

test('what the server says of its clock counts, also where nothing else has changed', async () => {
  const page = openPage(() => 'silence');
  page.streams[0]?.tell('change', change('pay', 0));
  page.streams[0]?.tell('beat', { now: 600_000 });
  expect(page.left()).toBe('for 5:00');
});

test('a page that the browser has kept is loaded anew', () => {
  const page = openPage(() => 'silence');
  page.comeBack();
  expect(page.reloads()).toBe(1);
});
