// Keeps an open page as the server says: it shows the screens that the server sends, counts down by the server's clock, and copies. Without it the page
// works too, and loads itself again. What it decides itself is one thing: when the time is over it shows nothing to pay with, also where it hears nothing.
const POLL_MS = 5_000;
const TELL_AFTER_MS = 5_000;
const CALM_AFTER_MS = 30_000;
/** The server sends the screen at once, and a sign of life every ten seconds: what is silent for longer is a connection that is gone, or a proxy that keeps it. */
const FIRST_WITHIN_MS = 5_000;
const NEXT_WITHIN_MS = 25_000;
/** What is left when it is said aloud, once each. */
const SAID_AT_S = [120, 30];

const { body } = document;
/** What it says by itself, in the language of the page. */
const words = JSON.parse(body.dataset.words);
const screen = document.getElementById('screen');
const said = document.getElementById('said');
const connection = document.getElementById('connection');

/** Counts from now by whichever clock has gone further: one stands still while a machine sleeps, the other can be set. */
function stopwatch() {
  const steady = performance.now();
  const wall = Date.now();
  return () => Math.max(performance.now() - steady, Date.now() - wall);
}

let saidNow = Number(body.dataset.now);
let sinceSaid = stopwatch();
const serverNow = () => saidNow + sinceSaid();
function setClock(now) {
  saidNow = now;
  sinceSaid = stopwatch();
}

let shown = null;
function show(change) {
  setClock(change.now);
  if (shown !== change.html) {
    shown = change.html;
    const kept = document.activeElement?.dataset?.keep;
    screen.innerHTML = change.html;
    if (kept !== undefined) screen.querySelector(`[data-keep="${kept}"]`)?.focus();
  }
  screen.dataset.screen = change.screen;
  if (said.textContent !== change.said) said.textContent = change.said;
  tick();
}

let lastLeft = Number.POSITIVE_INFINITY;
function tick() {
  const timer = screen.querySelector('[data-until]');
  if (timer === null) return;
  const left = Math.max(0, Math.ceil((Number(timer.dataset.until) - serverNow()) / 1000));
  timer.textContent = words.timeLeft.replace('#', `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`);
  timer.classList.toggle('soon', left <= SAID_AT_S[0]);
  const over = screen.querySelector('[data-over]');
  over.hidden = left > 0;
  screen.querySelector('[data-payable]').hidden = left === 0;
  if (left === 0 && lastLeft > 0) said.textContent = over.textContent;
  for (const at of SAID_AT_S)
    if (left > 0 && left <= at && lastLeft > at && lastLeft !== Number.POSITIVE_INFINITY)
      said.textContent = at >= 60 ? words.minutesLeft.replace('#', at / 60) : words.secondsLeft.replace('#', at);
  lastLeft = left;
}
setInterval(tick, 500);
tick();

let sinceLost = null;
function noteLost() {
  sinceLost ??= stopwatch();
}
function noteBack() {
  sinceLost = null;
  connection.hidden = true;
}

let stream = null;
let sinceHeard = stopwatch();
let allowedMs = FIRST_WITHIN_MS;
function hear() {
  sinceHeard = stopwatch();
  allowedMs = NEXT_WITHIN_MS;
  noteBack();
}

// the server sends the whole screen at once, and again with each change
const events = new URL(body.dataset.events, location.href);
function listen() {
  stream?.close();
  const opened = new EventSource(events);
  stream = opened;
  sinceHeard = stopwatch();
  allowedMs = FIRST_WITHIN_MS;
  opened.addEventListener('change', (event) => {
    hear();
    show(JSON.parse(event.data));
  });
  opened.addEventListener('beat', (event) => {
    hear();
    setClock(JSON.parse(event.data).now);
    tick();
  });
  opened.addEventListener('error', () => {
    noteLost();
    // a browser comes back by itself unless it was refused
    if (stream === opened && opened.readyState === EventSource.CLOSED) pollLater();
  });
}

function pollLater() {
  stream = null;
  setTimeout(poll, POLL_MS);
}

/** Where a stream is refused or silent, or a proxy does not let it through. */
async function poll() {
  try {
    const asked = { cache: 'no-store', headers: { accept: 'text/html' }, signal: AbortSignal.timeout(2 * POLL_MS) };
    const answer = await fetch(location.href, asked);
    if (answer.ok) {
      const there = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const { innerHTML, dataset } = there.getElementById('screen');
      noteBack();
      const now = Number(there.body.dataset.now);
      show({ html: innerHTML, screen: dataset.screen, said: there.getElementById('said').textContent, now });
    }
  } catch {
    noteLost();
  }
  setTimeout(listen, POLL_MS);
}

setInterval(() => {
  if (stream !== null && sinceHeard() >= allowedMs) {
    stream.close();
    stream = null;
    noteLost();
    void poll();
  }
  if (sinceLost === null || sinceLost() < TELL_AFTER_MS) return;
  connection.textContent = sinceLost() < CALM_AFTER_MS ? words.reconnecting : words.noConnection;
  connection.hidden = false;
}, 1_000);
// a page that the browser has kept as it was (the way back to it) shows what was true then
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
listen();

screen.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy]');
  if (button !== null) void copy(button);
});

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    said.textContent = words.copied;
  } catch {
    // without permission (or without TLS) whoever pays copies what is selected
    const range = document.createRange();
    const text = document.createElement('p');
    text.className = 'address';
    text.textContent = button.dataset.copy;
    button.after(text);
    range.selectNodeContents(text);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    said.textContent = words.selected;
  }
}

const controls = document.querySelector('.controls');
if (controls !== null) {
  controls.hidden = false;
  controls.addEventListener('click', (event) => {
    const { control, body: asked } = event.target.dataset;
    if (control !== undefined) void act(control, asked);
  });
}

async function act(control, asked) {
  try {
    const answer = await fetch(new URL(`../sandbox/${control}`, location.href), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: asked,
    });
    if (!answer.ok) said.textContent = (await answer.json()).message;
  } catch {
    noteLost();
  }
}
