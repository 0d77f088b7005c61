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

/** What a screen says in one sentence, to those who look and to screen readers. */
export function sentence(checkout: Checkout): string {
  const { receivedMinor, remainingMinor, businessName, uri } = checkout;
  const sentences: Readonly<Record<CheckoutScreen, string>> = {
    pay: uri === null ? 'Do not pay now.' : 'Waiting for the payment.',
    partly_paid: `${amount(checkout, receivedMinor)} has arrived. ${amount(checkout, remainingMinor)} is still to be paid.`,
    missing: 'A payment was seen that the network does not show at present. It may still arrive: do not pay again.',
    seen: `The payment was seen.${confirmations(checkout)} You can close this page.`,
    paid: 'Paid. Thank you.',
    expired:
      receivedMinor > 0n ? 'The time is over, and the payment was not complete.' : 'This price has expired. Do not pay now.',
    review: `${businessName} looks at this payment. Do not pay again.`,
    declined: 'This payment was not accepted. Do not pay again.',
    cancelled: `${businessName} has cancelled this payment. Do not pay.`,
    reimbursed: 'This payment was returned.',
  };
  return sentences[checkout.screen];
}

/** The screen, for the element that holds it. */
export function screen(checkout: Checkout): Html {
  const parts: Readonly<Record<CheckoutScreen, () => Html>> = {
    pay: () => toPay(checkout),
    partly_paid: () => toPay(checkout),
    seen: () => seen(checkout),
    paid: () => paid(checkout),
    missing: () =>
      over(
        checkout,
        'Waiting for the network',
        'Networks drop payments for a while when they are busy, and take them again. Nothing else is to be done.',
      ),
    expired: () =>
      over(
        checkout,
        'Expired',
        checkout.receivedMinor > 0n
          ? 'Ask the merchant to accept what has arrived, or to send it back.'
          : 'Ask the merchant for a new payment. What you have already sent is not lost: the merchant is told when it arrives.',
      ),
    review: () =>
      over(
        checkout,
        'Under review',
        'What arrived was too late, in another currency, or not what was asked for, or the network has taken it back.',
      ),
    declined: () => over(checkout, 'Not accepted', 'Ask the merchant to send back what arrived, or to accept it.'),
    cancelled: () => over(checkout, 'Cancelled', 'If you have sent something all the same, ask the merchant to send it back.'),
    reimbursed: () => over(checkout, 'Returned', 'The merchant has sent it back to the address that was agreed.'),
  };
  return parts[checkout.screen]();
}

const amount = ({ currency }: Checkout, minor: bigint): string => `${formatAmount(minor, currency)} ${balanceOf(currency)}`;
const isInvoice = ({ currency }: Pick<Checkout, 'currency'>): boolean => currency === LIGHTNING.code;
const usd = ({ usdMinor }: Checkout): string => `${formatMinor(usdMinor, 2)} USD`;

function confirmations(checkout: Checkout): string {
  const { confirmations: have, wantedConfirmations: want } = checkout;
  if (isInvoice(checkout)) return '';
  if (want === null) return ` ${have} confirmations; it counts when the network says that its block is final.`;
  return ` ${Math.min(have, want)} of ${want} ${want === 1 ? 'confirmation' : 'confirmations'}.`;
}

function toPay(checkout: Checkout): Html {
  const { currency, remainingMinor, uri, address, expiresAtMs, rate } = checkout;
  if (uri === null)
    return over(
      checkout,
      'Not now',
      `${CURRENCIES[currency].code} cannot be paid at present. Ask the merchant for another way to pay.`,
    );
  const digits = formatAmount(remainingMinor, currency);
  const until = new Date(expiresAtMs).toISOString();
  const what = isInvoice(checkout) ? 'invoice' : 'address';
  return html`<h1>${usd(checkout)}</h1>
${notices(checkout)}
<p class="warning" data-over hidden>The time is over. Do not pay now.</p>
<div data-payable>
<p class="amount"><bdi dir="ltr">${digits}</bdi> ${balanceOf(currency)} ${copy(digits, 'Copy amount', 'amount')}</p>
<p class="note">1 ${balanceOf(currency)} = ${formatRate(rate)} USD, fixed <time role="timer" aria-live="off" datetime="${until}" data-until="${String(expiresAtMs)}">until ${until.slice(11, 19)} UTC</time></p>
<img class="qr" src="${qrDataUri(uri)}" alt="QR code: ${digits} ${balanceOf(currency)} to the ${what} that ends in ${address.slice(-6)}">
<p><a class="wallet" href="${uri}" data-keep="wallet">Open in wallet</a></p>
<p class="address"><bdi dir="ltr"><b>${address.slice(0, 6)}</b>${address.slice(6, -6)}<b>${address.slice(-6)}</b></bdi></p>
<p>${copy(address, `Copy ${what}`, 'address')} ${!isInvoice(checkout) && copy(uri, 'Copy payment link', 'uri')}</p>
<p class="note">${network(checkout)}</p>
</div>`;
}

/** What has come in already, and what of it is not to be sent again. */
function notices(checkout: Checkout): Html {
  const { currency, isWatched, receivedMinor, awaitedMinor, remainingMinor, businessName } = checkout;
  const others = checkout.payments.filter((payment) => balanceOf(payment.currency) !== balanceOf(currency));
  return html`${checkout.screen === 'partly_paid' && html`<p class="warning"><strong>Not yet complete.</strong> Received: ${amount(checkout, receivedMinor)}. Still to be paid: ${amount(checkout, remainingMinor)}. Exchanges often take a fee from what they send: look at what arrives.</p>`}
${!isWatched && html`<p class="warning">Payments cannot be seen at present. What you have already sent is not lost: do not pay again.</p>`}
${awaitedMinor > 0n && html`<p class="warning">${amount(checkout, awaitedMinor)} was seen and is not shown by the network at present: do not send it again.</p>`}
${others.map((payment) => html`<p class="warning">${paidAs(payment)} has come to this address, which is not what is asked for. Ask ${businessName} to send it back.</p>`)}`;
}

const paidAs = ({ currency, minor }: Checkout['payments'][number]): string =>
  `${formatAmount(minor, currency)} ${balanceOf(currency)}`;

function network(checkout: Checkout): string {
  const { currency, tokenContract } = checkout;
  if (isInvoice(checkout)) return 'Pay with a Lightning wallet.';
  const { code, name, family } = CURRENCIES[currency];
  if (family === 'evm-token') return `Send ${code} on Ethereum only (ERC-20, contract ${tokenContract}).`;
  return family === 'utxo' ? `Send ${name} on its own network only.` : `Send ${code} on the Ethereum network only.`;
}

const copy = (text: string, label: string, name: string): Html =>
  html`<button type="button" data-copy="${text}" data-keep="${name}">${label}</button>`;

function seen(checkout: Checkout): Html {
  return html`<h1>Payment seen</h1>
<p class="amount">${amount(checkout, checkout.receivedMinor)}</p>
<ol class="steps"><li class="done">Seen</li><li class="now">Confirming</li><li>Done</li></ol>
${payments(checkout)}`;
}

function paid(checkout: Checkout): Html {
  const { excessMinor, businessName } = checkout;
  return html`<h1><span class="tick" aria-hidden="true">✓</span> Paid</h1>
<p class="amount">${usd(checkout)}</p>
<p class="note">${amount(checkout, checkout.receivedMinor)} to ${businessName}</p>
${excessMinor > 0n && html`<p class="warning">You have sent ${amount(checkout, excessMinor)} more than was asked for. Ask ${businessName} about it.</p>`}
${payments(checkout)}`;
}

function over(checkout: Checkout, title: string, text: string): Html {
  return html`<h1>${title}</h1>
<p class="amount">${usd(checkout)}</p>
${checkout.receivedMinor > 0n && html`<p class="note">Received: ${amount(checkout, checkout.receivedMinor)}</p>`}
<p class="note">${text}</p>
${payments(checkout)}`;
}

function payments(checkout: Checkout): Html | null {
  const { payments: list } = checkout;
  if (list.length === 0 || isInvoice(checkout)) return null;
  return html`<h2>Payments</h2>
<ul class="payments">${list.map((payment) => html`<li>${paidAs(payment)} <code>${payment.txid}</code>${payment.isGone && ' (not shown by the network at present)'}</li>`)}</ul>`;
}
