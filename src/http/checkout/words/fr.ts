// The words of the checkout page in French.
import type { Words } from './en.ts';

export const FR: Words = {
  name: 'Français',
  direction: 'ltr',
  language: 'Langue',
  paymentTo: (merchant) => `Paiement à ${merchant}`,

  waiting: 'En attente du paiement.',
  doNotPayNow: 'Ne payez pas maintenant.',
  partlyPaid: (received, remaining) => `${received} sont arrivés. Il reste ${remaining} à payer.`,
  notShownDoNotPayAgain:
    'Un paiement a été vu que le réseau ne montre pas en ce moment. Il peut encore arriver : ne payez pas une seconde fois.',
  wasSeen: 'Le paiement a été vu.',
  confirmations: (have, want) => `${have} sur ${want} ${want === 1 ? 'confirmation reçue' : 'confirmations reçues'}.`,
  untilFinal: (have) => `${have} confirmations ; il comptera quand le réseau déclarera son bloc définitif.`,
  canClose: 'Vous pouvez fermer cette page.',
  thankYou: 'Payé. Merci.',
  expiredPartly: 'Le délai est écoulé et le paiement n’était pas complet.',
  expiredUnpaid: 'Ce prix a expiré. Ne payez pas maintenant.',
  inReview: (merchant) => `${merchant} examine ce paiement. Ne payez pas une seconde fois.`,
  wasDeclined: 'Ce paiement n’a pas été accepté. Ne payez pas une seconde fois.',
  wasCancelled: (merchant) => `${merchant} a annulé ce paiement. Ne payez pas.`,
  wasReturned: 'Ce paiement a été renvoyé.',

  headings: {
    seen: 'Paiement vu',
    paid: 'Payé',
    missing: 'En attente du réseau',
    expired: 'Expiré',
    review: 'En cours d’examen',
    declined: 'Non accepté',
    cancelled: 'Annulé',
    reimbursed: 'Renvoyé',
    notNow: 'Pas maintenant',
  },
  aboutMissing:
    'Quand ils sont chargés, les réseaux abandonnent des paiements pendant un temps, puis les reprennent. Il n’y a rien d’autre à faire.',
  aboutExpiredPartly: 'Demandez au marchand d’accepter ce qui est arrivé ou de le renvoyer.',
  aboutExpiredUnpaid:
    'Demandez au marchand de créer une nouvelle demande de paiement. Ce que vous avez déjà envoyé n’est pas perdu : le marchand sera averti de son arrivée.',
  aboutReview: 'Le paiement est arrivé trop tard, dans une autre monnaie ou pas comme demandé, ou le réseau l’a repris.',
  aboutDeclined: 'Demandez au marchand de renvoyer ce qui est arrivé ou de l’accepter.',
  aboutCancelled: 'Si vous avez tout de même envoyé quelque chose, demandez au marchand de le renvoyer.',
  aboutReturned: 'Le marchand l’a renvoyé à l’adresse convenue.',
  cannotBePaid: (currency) =>
    `Il n’est pas possible de payer en ${currency} en ce moment. Demandez au marchand un autre moyen de paiement.`,

  timeIsOver: 'Le délai est écoulé. Ne payez pas maintenant.',
  copyAmount: 'Copier le montant',
  copyAddress: 'Copier l’adresse',
  copyInvoice: 'Copier la facture',
  copyLink: 'Copier le lien de paiement',
  openInWallet: 'Ouvrir dans le portefeuille',
  rateIsFixed: (unit, rate) => `1 ${unit} = ${rate} USD, garanti`,
  until: (time) => `jusqu’à ${time} UTC`,
  qrToAddress: (amount, end) => `Code QR : ${amount} à l’adresse qui finit par ${end}`,
  qrToInvoice: (amount, end) => `Code QR : ${amount} à la facture qui finit par ${end}`,
  payOverLightning: 'Payez avec un portefeuille Lightning.',
  sendToken: (code, contract) => `Envoyez ${code} uniquement par Ethereum (ERC-20, contrat ${contract}).`,
  sendOnItsNetwork: (name) => `Envoyez ${name} uniquement par son propre réseau.`,
  sendOnEthereum: (code) => `Envoyez ${code} uniquement par le réseau Ethereum.`,

  notComplete: 'Pas encore complet.',
  received: (amount) => `Reçu : ${amount}`,
  stillToPay: (amount) => `Reste à payer : ${amount}`,
  exchangesTakeFees: 'Les plateformes d’échange prélèvent souvent des frais sur ce qu’elles envoient : vérifiez ce qui arrive.',
  cannotBeSeen:
    'Les paiements ne peuvent pas être vus en ce moment. Ce que vous avez déjà envoyé n’est pas perdu : ne payez pas une seconde fois.',
  doNotSendAgain: (amount) =>
    `${amount} ont été vus et ne sont pas montrés par le réseau en ce moment : ne les envoyez pas une seconde fois.`,
  otherCame: (amount, merchant) =>
    `${amount} sont arrivés à cette adresse, ce qui n’est pas ce qui est demandé. Demandez à ${merchant} de les renvoyer.`,
  steps: ['Vu', 'Confirmation', 'Terminé'],
  paidTo: (amount, merchant) => `${amount} à ${merchant}`,
  tooMuch: (amount, merchant) => `Vous avez envoyé ${amount} de plus que demandé. Adressez-vous à ${merchant}.`,
  payments: 'Paiements',
  notShown: 'pas montré par le réseau en ce moment',

  browser: {
    timeLeft: 'pendant #',
    minutesLeft: 'Il reste # minutes.',
    secondsLeft: 'Il reste # secondes.',
    copied: 'Copié.',
    selected: 'Sélectionné : copiez-le avec le clavier ou le menu.',
    reconnecting: 'Reconnexion…',
    noConnection: 'Pas de connexion. Cette page continue d’essayer ; ce que vous avez déjà envoyé est en sécurité.',
  },
};
