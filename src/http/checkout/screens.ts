// The part of the checkout page that changes: one screen for each situation. The server writes it for the first answer and for every change, so that the page
// works without JavaScript, and nothing is decided in the browser.

import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { balanceOf, CURRENCIES } from '../../core/currency.ts';
import type { CheckoutScreen } from '../../core/judge/checkout.ts';
import { formatAmount, formatMinor } from '../../core/money.ts';
import { formatRate } from '../../core/rate.ts';
import type { Checkout } from '../../flow/transactions/checkouts.ts';
import { type Html, html } from '../pages/html.ts';
import { qrDataUri } from '../qr/data-uri.ts';
import type { Words } from './words/en.ts';

/** What a screen says in one sentence, to those who look and to screen readers. */
export function sentence(checkout: Checkout, words: Words): string {
  const { receivedMinor, remainingMinor, businessName, uri } = checkout;
  const sentences: Readonly<Record<CheckoutScreen, string>> = {
    pay: uri === null ? words.doNotPayNow : words.waiting,
    partly_paid: words.partlyPaid(amount(checkout, receivedMinor), amount(checkout, remainingMinor)),
    missing: words.notShownDoNotPayAgain,
    seen: [words.wasSeen, confirmations(checkout, words), words.canClose].filter((one) => one !== null).join(' '),
    paid: words.thankYou,
    expired: receivedMinor > 0n ? words.expiredPartly : words.expiredUnpaid,
    review: words.inReview(businessName),
    declined: words.wasDeclined,
    cancelled: words.wasCancelled(businessName),
    reimbursed: words.wasReturned,
  };
  return sentences[checkout.screen];
}

/** The screen, for the element that holds it. */
export function screen(checkout: Checkout, words: Words): Html {
  const { headings } = words;
  const { receivedMinor } = checkout;
  const parts: Readonly<Record<CheckoutScreen, () => Html>> = {
    pay: () => toPay(checkout, words),
    partly_paid: () => toPay(checkout, words),
    seen: () => seen(checkout, words),
    paid: () => paid(checkout, words),
    missing: () => over(checkout, words, headings.missing, words.aboutMissing),
    expired: () =>
      over(checkout, words, headings.expired, receivedMinor > 0n ? words.aboutExpiredPartly : words.aboutExpiredUnpaid),
    review: () => over(checkout, words, headings.review, words.aboutReview),
    declined: () => over(checkout, words, headings.declined, words.aboutDeclined),
    cancelled: () => over(checkout, words, headings.cancelled, words.aboutCancelled),
    reimbursed: () => over(checkout, words, headings.reimbursed, words.aboutReturned),
  };
  return parts[checkout.screen]();
}

const amount = ({ currency }: Checkout, minor: bigint): string => `${formatAmount(minor, currency)} ${balanceOf(currency)}`;
/** An amount with its unit, in its own direction also where the page is written from right to left. */
const inDigits = (text: string): Html => html`<bdi dir="ltr">${text}</bdi>`;
const isInvoice = ({ currency }: Pick<Checkout, 'currency'>): boolean => currency === LIGHTNING.code;
const usd = ({ usdMinor }: Checkout): string => `${formatMinor(usdMinor, 2)} USD`;

function confirmations(checkout: Checkout, words: Words): string | null {
  const { confirmations: have, wantedConfirmations: want } = checkout;
  if (isInvoice(checkout)) return null;
  return want === null ? words.untilFinal(have) : words.confirmations(Math.min(have, want), want);
}

function toPay(checkout: Checkout, words: Words): Html {
  const { currency, remainingMinor, uri, address, expiresAtMs, rate } = checkout;
  if (uri === null) return over(checkout, words, words.headings.notNow, words.cannotBePaid(CURRENCIES[currency].code));
  const digits = formatAmount(remainingMinor, currency);
  const until = new Date(expiresAtMs).toISOString();
  const [copiesIt, qrTo] = isInvoice(checkout) ? [words.copyInvoice, words.qrToInvoice] : [words.copyAddress, words.qrToAddress];
  const asked = `${digits} ${balanceOf(currency)}`;
  return html`<h1>${inDigits(usd(checkout))}</h1>
${notices(checkout, words)}
<p class="warning" data-over hidden>${words.timeIsOver}</p>
<div data-payable>
<p class="amount">${inDigits(asked)} ${copy(digits, words.copyAmount, 'amount')}</p>
<p class="note">${words.rateIsFixed(balanceOf(currency), formatRate(rate))} <time role="timer" aria-live="off" datetime="${until}" data-until="${String(expiresAtMs)}">${words.until(until.slice(11, 19))}</time></p>
<img class="qr" src="${qrDataUri(uri)}" alt="${qrTo(asked, address.slice(-6))}">
<p><a class="wallet" href="${uri}" data-keep="wallet">${words.openInWallet}</a></p>
<p class="address"><bdi dir="ltr"><b>${address.slice(0, 6)}</b>${address.slice(6, -6)}<b>${address.slice(-6)}</b></bdi></p>
<p>${copy(address, copiesIt, 'address')} ${!isInvoice(checkout) && copy(uri, words.copyLink, 'uri')}</p>
<p class="note">${network(checkout, words)}</p>
</div>`;
}

/** What has come in already, and what of it is not to be sent again. */
function notices(checkout: Checkout, words: Words): Html {
  const { currency, isWatched, receivedMinor, awaitedMinor, remainingMinor, businessName } = checkout;
  const others = checkout.payments.filter((payment) => balanceOf(payment.currency) !== balanceOf(currency));
  return html`${checkout.screen === 'partly_paid' && html`<p class="warning"><strong>${words.notComplete}</strong> ${words.received(amount(checkout, receivedMinor))}. ${words.stillToPay(amount(checkout, remainingMinor))}. ${words.exchangesTakeFees}</p>`}
${!isWatched && html`<p class="warning">${words.cannotBeSeen}</p>`}
${awaitedMinor > 0n && html`<p class="warning">${words.doNotSendAgain(amount(checkout, awaitedMinor))}</p>`}
${others.map((payment) => html`<p class="warning">${words.otherCame(paidAs(payment), businessName)}</p>`)}`;
}

const paidAs = ({ currency, minor }: Checkout['payments'][number]): string =>
  `${formatAmount(minor, currency)} ${balanceOf(currency)}`;

function network(checkout: Checkout, words: Words): string {
  const { currency, tokenContract } = checkout;
  if (isInvoice(checkout)) return words.payOverLightning;
  const { code, name, family } = CURRENCIES[currency];
  if (family === 'evm-token') return words.sendToken(code, String(tokenContract));
  return family === 'utxo' ? words.sendOnItsNetwork(name) : words.sendOnEthereum(code);
}

const copy = (text: string, label: string, name: string): Html =>
  html`<button type="button" data-copy="${text}" data-keep="${name}">${label}</button>`;

function seen(checkout: Checkout, words: Words): Html {
  const [isSeen, isConfirming, isDone] = words.steps;
  return html`<h1>${words.headings.seen}</h1>
<p class="amount">${inDigits(amount(checkout, checkout.receivedMinor))}</p>
<ol class="steps"><li class="done">${isSeen}</li><li class="now">${isConfirming}</li><li>${isDone}</li></ol>
${payments(checkout, words)}`;
}

function paid(checkout: Checkout, words: Words): Html {
  const { excessMinor, businessName } = checkout;
  return html`<h1><span class="tick" aria-hidden="true">✓</span> ${words.headings.paid}</h1>
<p class="amount">${inDigits(usd(checkout))}</p>
<p class="note">${words.paidTo(amount(checkout, checkout.receivedMinor), businessName)}</p>
${excessMinor > 0n && html`<p class="warning">${words.tooMuch(amount(checkout, excessMinor), businessName)}</p>`}
${payments(checkout, words)}`;
}

function over(checkout: Checkout, words: Words, title: string, text: string): Html {
  return html`<h1>${title}</h1>
<p class="amount">${inDigits(usd(checkout))}</p>
${checkout.receivedMinor > 0n && html`<p class="note">${words.received(amount(checkout, checkout.receivedMinor))}</p>`}
<p class="note">${text}</p>
${payments(checkout, words)}`;
}

function payments(checkout: Checkout, words: Words): Html | null {
  const { payments: list } = checkout;
  if (list.length === 0 || isInvoice(checkout)) return null;
  return html`<h2>${words.payments}</h2>
<ul class="payments">${list.map((payment) => html`<li>${inDigits(paidAs(payment))} <code>${payment.txid}</code>${payment.isGone && ` (${words.notShown})`}</li>`)}</ul>`;
}
