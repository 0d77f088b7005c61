// The words of the checkout page in English. Every other language says the same; what must not be done with money stands in each of them.

export const EN = {
  /** What the language calls itself. */
  name: 'English',
  /** In which direction it is written. */
  direction: 'ltr' as 'ltr' | 'rtl',
  language: 'Language',
  paymentTo: (merchant: string) => `Payment to ${merchant}`,

  // the one sentence of each screen
  waiting: 'Waiting for the payment.',
  doNotPayNow: 'Do not pay now.',
  partlyPaid: (received: string, remaining: string) => `${received} has arrived. ${remaining} is still to be paid.`,
  notShownDoNotPayAgain: 'A payment was seen that the network does not show at present. It may still arrive: do not pay again.',
  wasSeen: 'The payment was seen.',
  confirmations: (have: number, want: number) => `${have} of ${want} ${want === 1 ? 'confirmation' : 'confirmations'}.`,
  untilFinal: (have: number) => `${have} confirmations; it counts when the network says that its block is final.`,
  canClose: 'You can close this page.',
  thankYou: 'Paid. Thank you.',
  expiredPartly: 'The time is over, and the payment was not complete.',
  expiredUnpaid: 'This price has expired. Do not pay now.',
  inReview: (merchant: string) => `${merchant} looks at this payment. Do not pay again.`,
  wasDeclined: 'This payment was not accepted. Do not pay again.',
  wasCancelled: (merchant: string) => `${merchant} has cancelled this payment. Do not pay.`,
  wasReturned: 'This payment was returned.',

  // headings, and what stands below them
  headings: {
    seen: 'Payment seen',
    paid: 'Paid',
    missing: 'Waiting for the network',
    expired: 'Expired',
    review: 'Under review',
    declined: 'Not accepted',
    cancelled: 'Cancelled',
    reimbursed: 'Returned',
    notNow: 'Not now',
  },
  aboutMissing: 'Networks drop payments for a while when they are busy, and take them again. Nothing else is to be done.',
  aboutExpiredPartly: 'Ask the merchant to accept what has arrived, or to send it back.',
  aboutExpiredUnpaid:
    'Ask the merchant for a new payment. What you have already sent is not lost: the merchant is told when it arrives.',
  aboutReview: 'What arrived was too late, in another currency, or not what was asked for, or the network has taken it back.',
  aboutDeclined: 'Ask the merchant to send back what arrived, or to accept it.',
  aboutCancelled: 'If you have sent something all the same, ask the merchant to send it back.',
  aboutReturned: 'The merchant has sent it back to the address that was agreed.',
  cannotBePaid: (currency: string) => `${currency} cannot be paid at present. Ask the merchant for another way to pay.`,

  // paying
  timeIsOver: 'The time is over. Do not pay now.',
  copyAmount: 'Copy amount',
  copyAddress: 'Copy address',
  copyInvoice: 'Copy invoice',
  copyLink: 'Copy payment link',
  openInWallet: 'Open in wallet',
  /** How long follows: `until`, or in a browser that counts `timeLeft`. */
  rateIsFixed: (unit: string, rate: string) => `1 ${unit} = ${rate} USD, fixed`,
  until: (time: string) => `until ${time} UTC`,
  qrToAddress: (amount: string, end: string) => `QR code: ${amount} to the address that ends in ${end}`,
  qrToInvoice: (amount: string, end: string) => `QR code: ${amount} to the invoice that ends in ${end}`,
  payOverLightning: 'Pay with a Lightning wallet.',
  sendToken: (code: string, contract: string) => `Send ${code} on Ethereum only (ERC-20, contract ${contract}).`,
  sendOnItsNetwork: (name: string) => `Send ${name} on its own network only.`,
  sendOnEthereum: (code: string) => `Send ${code} on the Ethereum network only.`,

  // what has come
  notComplete: 'Not yet complete.',
  received: (amount: string) => `Received: ${amount}`,
  stillToPay: (amount: string) => `Still to be paid: ${amount}`,
  exchangesTakeFees: 'Exchanges often take a fee from what they send: look at what arrives.',
  cannotBeSeen: 'Payments cannot be seen at present. What you have already sent is not lost: do not pay again.',
  doNotSendAgain: (amount: string) => `${amount} was seen and is not shown by the network at present: do not send it again.`,
  otherCame: (amount: string, merchant: string) =>
    `${amount} has come to this address, which is not what is asked for. Ask ${merchant} to send it back.`,
  steps: ['Seen', 'Confirming', 'Done'] as readonly [string, string, string],
  paidTo: (amount: string, merchant: string) => `${amount} to ${merchant}`,
  tooMuch: (amount: string, merchant: string) => `You have sent ${amount} more than was asked for. Ask ${merchant} about it.`,
  payments: 'Payments',
  notShown: 'not shown by the network at present',

  /** What the browser says by itself; `#` stands for a number or a time. */
  browser: {
    timeLeft: 'for #',
    minutesLeft: '# minutes are left.',
    secondsLeft: '# seconds are left.',
    copied: 'Copied.',
    selected: 'Selected: copy it with your keyboard or menu.',
    reconnecting: 'Reconnecting…',
    noConnection: 'No connection. This page keeps trying; what you have already sent is safe.',
  },
};

/** The words of one language. */
export type Words = typeof EN;
