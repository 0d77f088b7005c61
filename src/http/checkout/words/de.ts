// The words of the checkout page in German.
import type { Words } from './en.ts';

export const DE: Words = {
  name: 'Deutsch',
  direction: 'ltr',
  language: 'Sprache',
  paymentTo: (merchant) => `Zahlung an ${merchant}`,

  waiting: 'Warten auf die Zahlung.',
  doNotPayNow: 'Zahlen Sie jetzt nicht.',
  partlyPaid: (received, remaining) => `${received} sind angekommen. ${remaining} sind noch zu zahlen.`,
  notShownDoNotPayAgain:
    'Eine Zahlung wurde gesehen, die das Netz zurzeit nicht zeigt. Sie kann noch ankommen: Zahlen Sie nicht noch einmal.',
  wasSeen: 'Die Zahlung wurde gesehen.',
  confirmations: (have, want) => `${have} von ${want} ${want === 1 ? 'Bestätigung' : 'Bestätigungen'}.`,
  untilFinal: (have) => `${have} Bestätigungen; sie zählt, sobald das Netz ihren Block für endgültig erklärt.`,
  canClose: 'Sie können diese Seite schließen.',
  thankYou: 'Bezahlt. Vielen Dank.',
  expiredPartly: 'Die Zeit ist um, und die Zahlung war nicht vollständig.',
  expiredUnpaid: 'Dieser Preis gilt nicht mehr. Zahlen Sie jetzt nicht.',
  inReview: (merchant) => `${merchant} prüft diese Zahlung. Zahlen Sie nicht noch einmal.`,
  wasDeclined: 'Diese Zahlung wurde nicht angenommen. Zahlen Sie nicht noch einmal.',
  wasCancelled: (merchant) => `${merchant} hat diese Zahlung abgebrochen. Zahlen Sie nicht.`,
  wasReturned: 'Diese Zahlung wurde zurückgesendet.',

  headings: {
    seen: 'Zahlung gesehen',
    paid: 'Bezahlt',
    missing: 'Warten auf das Netz',
    expired: 'Abgelaufen',
    review: 'In Prüfung',
    declined: 'Nicht angenommen',
    cancelled: 'Abgebrochen',
    reimbursed: 'Zurückgesendet',
    notNow: 'Zurzeit nicht',
  },
  aboutMissing:
    'Ausgelastete Netze lassen Zahlungen für eine Weile fallen und nehmen sie später wieder auf. Sonst ist nichts zu tun.',
  aboutExpiredPartly: 'Bitten Sie den Händler, das Angekommene anzunehmen oder zurückzusenden.',
  aboutExpiredUnpaid:
    'Bitten Sie den Händler um eine neue Zahlungsaufforderung. Was Sie schon gesendet haben, ist nicht verloren: Der Händler erfährt, wenn es ankommt.',
  aboutReview: 'Was ankam, kam zu spät, in einer anderen Währung oder nicht wie verlangt, oder das Netz hat es zurückgenommen.',
  aboutDeclined: 'Bitten Sie den Händler, das Angekommene zurückzusenden oder anzunehmen.',
  aboutCancelled: 'Falls Sie trotzdem etwas gesendet haben, bitten Sie den Händler, es zurückzusenden.',
  aboutReturned: 'Der Händler hat sie an die vereinbarte Adresse zurückgesendet.',
  cannotBePaid: (currency) =>
    `Mit ${currency} kann zurzeit nicht gezahlt werden. Bitten Sie den Händler um eine andere Zahlungsart.`,

  timeIsOver: 'Die Zeit ist um. Zahlen Sie jetzt nicht.',
  copyAmount: 'Betrag kopieren',
  copyAddress: 'Adresse kopieren',
  copyInvoice: 'Rechnung kopieren',
  copyLink: 'Zahlungslink kopieren',
  openInWallet: 'In der Wallet öffnen',
  rateIsFixed: (unit, rate) => `1 ${unit} = ${rate} USD, gilt`,
  until: (time) => `bis ${time} UTC`,
  qrToAddress: (amount, end) => `QR-Code: ${amount} an die Adresse, die auf ${end} endet`,
  qrToInvoice: (amount, end) => `QR-Code: ${amount} an die Rechnung, die auf ${end} endet`,
  payOverLightning: 'Zahlen Sie mit einer Lightning-Wallet.',
  sendToken: (code, contract) => `Senden Sie ${code} nur über Ethereum (ERC-20, Vertrag ${contract}).`,
  sendOnItsNetwork: (name) => `Senden Sie ${name} nur über das eigene Netz.`,
  sendOnEthereum: (code) => `Senden Sie ${code} nur über das Ethereum-Netz.`,

  notComplete: 'Noch nicht vollständig.',
  received: (amount) => `Erhalten: ${amount}`,
  stillToPay: (amount) => `Noch zu zahlen: ${amount}`,
  exchangesTakeFees: 'Börsen ziehen oft eine Gebühr von dem ab, was sie senden: Achten Sie darauf, was ankommt.',
  cannotBeSeen:
    'Zahlungen können zurzeit nicht gesehen werden. Was Sie schon gesendet haben, ist nicht verloren: Zahlen Sie nicht noch einmal.',
  doNotSendAgain: (amount) =>
    `${amount} wurden gesehen und werden vom Netz zurzeit nicht gezeigt: Senden Sie sie nicht noch einmal.`,
  otherCame: (amount, merchant) =>
    `${amount} sind an dieser Adresse angekommen. Das ist nicht, was verlangt wurde. Bitten Sie ${merchant}, es zurückzusenden.`,
  steps: ['Gesehen', 'Wird bestätigt', 'Fertig'],
  paidTo: (amount, merchant) => `${amount} an ${merchant}`,
  tooMuch: (amount, merchant) => `Sie haben ${amount} mehr gesendet als verlangt. Fragen Sie ${merchant} danach.`,
  payments: 'Zahlungen',
  notShown: 'wird vom Netz zurzeit nicht gezeigt',

  browser: {
    timeLeft: 'noch #',
    minutesLeft: 'Noch # Minuten.',
    secondsLeft: 'Noch # Sekunden.',
    copied: 'Kopiert.',
    selected: 'Markiert: Kopieren Sie es mit Tastatur oder Menü.',
    reconnecting: 'Verbindung wird wiederhergestellt …',
    noConnection: 'Keine Verbindung. Diese Seite versucht es weiter; was Sie schon gesendet haben, ist sicher.',
  },
};
