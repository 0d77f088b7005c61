// The checkout page as a document, and what a change of it is told as.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { Checkout } from '../../flow/transactions/checkouts.ts';
import { pageFile } from '../pages/files.ts';
import { html, htmlPage } from '../pages/html.ts';
import { screen, sentence } from './screens.ts';
import { LANGUAGES, type Language } from './words/languages.ts';

/** What the page loads. */
export const FILES = { style: pageFile('checkout', 'checkout', 'css'), script: pageFile('checkout', 'checkout', 'js') } as const;

/** Screens after which nothing happens by itself any more. */
const AT_REST: ReadonlySet<Checkout['screen']> = new Set(['cancelled', 'reimbursed']);

/**
 * The document. Addresses in it are relative to `/pay/`, so that a proxy may put it anywhere.
 * @param sandbox the customer's wallet is simulated, and the page can play it
 */
export function page(
  checkout: Checkout,
  of: { readonly token: string; readonly language: Language; readonly sandbox: boolean },
): string {
  const { businessName, label, screen: shown } = checkout;
  const { token, language, sandbox } = of;
  const words = LANGUAGES[language];
  const head = html`<meta name="robots" content="noindex">
<script type="module" src="${FILES.script.name}"></script>
${!AT_REST.has(shown) && html`<noscript><meta http-equiv="refresh" content="15"></noscript>`}`;
  const body = html`<body data-events="${token}/events?lang=${language}" data-now="${String(checkout.nowMs)}" data-words="${JSON.stringify(words.browser)}">
${sandbox && html`<aside class="sandbox" aria-label="Sandbox">Sandbox: no real money</aside>`}
<main>
<header><p class="merchant" dir="auto">${businessName}</p>${label !== null && html`<p class="note" dir="auto">${label}</p>`}</header>
<div id="screen" data-screen="${shown}">${screen(checkout, words)}</div>
<p id="said" role="status">${sentence(checkout, words)}</p>
<p id="connection" class="note" hidden></p>
${sandbox && sandboxBar(checkout)}
<nav class="languages" aria-label="${words.language}">${Object.entries(LANGUAGES).map(([tag, { name }]) => html`<a href="?lang=${tag}" lang="${tag}" hreflang="${tag}"${tag === language && html` aria-current="true"`}>${name}</a> `)}</nav>
</main>
</body>`;
  const { paymentTo, direction } = words;
  return htmlPage({ title: paymentTo(businessName), style: FILES.style.name, head, language, direction }, body);
}

/** Only of the sandbox, whose controls need no token. */
function sandboxBar({ transactionId, currency }: Checkout) {
  const pays = JSON.stringify({ transaction_id: transactionId });
  const mines = JSON.stringify({ currency, blocks: 1 });
  return html`<section class="controls" aria-label="The customer's wallet" hidden>
<button type="button" data-control="pay" data-body="${pays}">Pay as a customer</button>
${currency !== LIGHTNING.code && html`<button type="button" data-control="mine" data-body="${mines}">Mine a block</button>`}
</section>`;
}

/** What open pages are told when something has changed: the whole screen, so that one that missed others lacks nothing. */
export function change(checkout: Checkout, language: Language) {
  const { status, screen: shown, expiresAtMs, nowMs } = checkout;
  const words = LANGUAGES[language];
  return {
    status,
    screen: shown,
    said: sentence(checkout, words),
    expires_at: new Date(expiresAtMs).toISOString(),
    html: screen(checkout, words).html,
    now: nowMs,
  };
}

/** A page that says why there is none. */
export function errorPage(title: string, text: string): string {
  const body = html`<body><main><h1>${title}</h1><p class="note">${text}</p></main></body>`;
  return htmlPage({ title, style: FILES.style.name }, body);
}
