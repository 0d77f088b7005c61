// Keeps an open page as the server says: it shows the screens that the server sends, counts down by the server's clock, and copies. Without it the page
// works too, and loads itself again.
const POLL_MS = 5_000;
const TELL_AFTER_MS = 5_000;
const CALM_AFTER_MS = 30_000;
/** What is left when it is said aloud, once each. */
const SAID_AT_S = [120, 30];

const { body } = document;
const screen = document.getElementById('screen');
const said = document.getElementById('said');
const connection = document.getElementById('connection');
// the server's clock, whatever this machine's says
let serverAheadMs = Number(body.dataset.now) - performance.now();
const serverNow = () => performance.now() + serverAheadMs;

let shown = null;
function show(change) {
  serverAheadMs = change.now - performance.now();
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
  timer.textContent = `for ${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`;
  timer.classList.toggle('soon', left <= SAID_AT_S[0]);
  for (const at of SAID_AT_S)
    if (left <= at && lastLeft > at && lastLeft !== Number.POSITIVE_INFINITY)
      said.textContent = at >= 60 ? `${at / 60} minutes are left.` : `${at} seconds are left.`;
  lastLeft = left;
}
setInterval(tick, 500);
tick();

let lostAtMs = null;
function noteLost() {
  lostAtMs ??= performance.now();
}
function noteBack() {
  lostAtMs = null;
  connection.hidden = true;
}
setInterval(() => {
  if (lostAtMs === null || performance.now() - lostAtMs < TELL_AFTER_MS) return;
  connection.textContent =
    performance.now() - lostAtMs < CALM_AFTER_MS
      ? 'Reconnecting…'
      : 'No connection. This page keeps trying; what you have already sent is safe.';
  connection.hidden = false;
}, 1_000);

// the server sends the whole screen at once, and again with each change
const events = new URL(body.dataset.events, location.href);
function listen() {
  const source = new EventSource(events);
  source.addEventListener('change', (event) => {
    noteBack();
    show(JSON.parse(event.data));
  });
  source.addEventListener('error', () => {
    noteLost();
    // a browser comes back by itself unless it was refused
    if (source.readyState === EventSource.CLOSED) setTimeout(poll, POLL_MS);
  });
}

/** Where a stream is refused, or a proxy does not let it through. */
async function poll() {
  try {
    const answer = await fetch(location.href, { cache: 'no-store', headers: { accept: 'text/html' } });
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
listen();

screen.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy]');
  if (button !== null) void copy(button);
});

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    said.textContent = 'Copied.';
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
    said.textContent = 'Selected: copy it with your keyboard or menu.';
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
