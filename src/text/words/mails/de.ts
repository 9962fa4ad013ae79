import type { MailWords } from './en.ts';

export const de: MailWords = {
  stop: 'Diese Mails abbestellen oder wieder erhalten',
  ignore: 'Wenn Sie das nicht erwartet haben, tun Sie nichts.',

  newSubmission: 'Neue Einsendung: {form}',
  received: 'Eingegangen am {time}.',
  receivedNth: 'Eingegangen am {time}, als Einsendung Nr. {n} an diesem Tag.',
  noAnswers: 'Jemand hat das Formular ohne eine Antwort abgesendet.',
  leftOut: 'Die Antworten sind zu lang für eine Mail, deshalb fehlt ein Teil davon.',
  wholeForOwner: 'Der Link unten zeigt sie ganz.',
  wholeForOthers:
    'Ganz sieht sie der Inhaber des Formulars, ebenso ein API-Schlüssel seines Projekts: GET {url}',
  filesUntil: 'Die Links zu Dateien gelten bis zum {day}, für alle, die sie haben.',
  filesLater: 'Die Dateien lassen sich öffnen, sobald Sie Ihre Adresse bestätigt haben.',
  open: 'Diese Einsendung öffnen',
  submission: 'Einsendung {id}',
  whyOwner: 'Sie erhalten diese Mail, weil das Formular „{form}“ Ihnen gehört.',
  whyUnconfirmed:
    'Sie erhalten diese Mail, weil das Formular „{form}“ mit dieser Adresse als Inhaber veröffentlicht wurde. Bestätigt haben Sie das noch nicht.',
  whyNamed:
    'Sie erhalten diese Mail, weil das Formular „{form}“ diese Adresse als Empfänger nennt und Sie das bestätigt haben.',
  whyAdded:
    'Sie erhalten diese Mail, weil der Inhaber des Formulars „{form}“ diese Adresse als Empfänger hinzugefügt hat und Sie das bestätigt haben.',
  whyOperator:
    'Sie erhalten diese Mail, weil diese Adresse die des Dienstes ist und jemand sein Demo-Formular ausprobiert hat.',
  whyAnswered: 'Sie erhalten diese Mail einmalig, weil Ihre Adresse im Formular „{form}“ angegeben wurde.',

  confirmTitle: 'Bestätigen Sie Ihr Formular',
  confirmText:
    'Das Formular „{form}“ ist veröffentlicht, und diese Adresse soll seine Einsendungen erhalten.',
  confirmWebhookText:
    'Das Formular „{form}“ ist veröffentlicht und soll dieser Adresse gehören. Seine Einsendungen gehen an ein Programm (einen Webhook), nicht per Mail.',
  confirmButton: 'Diese Adresse bestätigen',
  page: 'Seine Seite, zum Weitergeben',
  recipientTitle: 'Bestätigen Sie, dass Sie Einsendungen erhalten möchten',
  recipientText:
    'Der Inhaber des Formulars „{form}“ möchte dessen Einsendungen an diese Adresse senden lassen.',
  recipientButton: 'Diese Mails erhalten',
  takeOverTitle: 'Formular übernehmen',
  takeOverText: 'Diese Adresse wurde als neuer Inhaber des Formulars „{form}“ genannt.',
  takeOverButton: 'Inhaber werden',
  whyAsked: 'Gesendet an {email}, weil jemand dem Formulardienst diese Adresse angegeben hat.',

  noticeSubject: 'Antworten warten, bis Sie diese Adresse bestätigen',
  noticeTitle: 'Antworten warten auf Sie',
  noticeText: 'Antworten auf das Formular „{form}“, die auf Sie warten: {n}.',
  noticeTextNameless: 'Antworten auf ein Formular, die auf Sie warten: {n}.',
  noticeMore:
    'Jemand hat das Formular ohne API-Schlüssel angelegt und diese Adresse als Inhaber genannt. Die Antworten werden gesendet, sobald Sie das bestätigt haben.',

  signInTitle: 'Anmeldung bei Ihren Formularen',
  signInText:
    'Dieser Link öffnet die Seite der Formulare, die dieser Adresse gehören. Er funktioniert einmal, 15 Minuten lang.',
  signInIgnore:
    'Wenn Sie ihn nicht angefordert haben, tun Sie nichts: Ohne den Link kann sich niemand anmelden.',
  signInButton: 'Anmelden',
  whySignIn: 'Gesendet an {email}, weil jemand mit dieser Adresse einen Anmeldelink angefordert hat.',

  webhookTitle: 'Ein Webhook wurde abgeschaltet',
  webhookText:
    'An {host} wird nichts mehr gesendet (Webhook {id}). Seit fünf Tagen ist jeder Versuch fehlgeschlagen.',
  webhookMore:
    'Die Einsendungen bleiben erhalten. Wenn der Empfänger wieder funktioniert, schalten Sie den Webhook ein und senden Sie nach, was fehlgeschlagen ist.',
  whyWebhook: 'Sie erhalten diese Mail, weil Ihnen ein Formular gehört, das dieser Webhook bedient.',
};
